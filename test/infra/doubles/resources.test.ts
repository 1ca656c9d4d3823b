import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { EngineApi } from "./docker/engine-api.ts";
import { imageDouble, networkDouble, volumeDouble } from "./docker/others.ts";
import { roleDouble } from "./postgresql/role.ts";
import { diffProvider, type ResourceDouble, type Values } from "./protocol.ts";

interface Observation {
  readonly op: "replace" | "update" | "same";
}

const { versions: _versions, ...observed } = JSON.parse(
  readFileSync(new URL("observed/other.json", import.meta.url), "utf8"),
) as Readonly<Record<string, Readonly<Record<string, Observation>>>>;

/** Diffs need no engine and no server. */
const none = {} as EngineApi;
const nowhere = { host: "", port: 0, user: "", password: "", database: "" };

const doubles: Readonly<Record<string, ResourceDouble>> = {
  "docker.Network": networkDouble(none),
  "docker.Volume": volumeDouble(none),
  "docker.RemoteImage": imageDouble(none),
  "postgresql.Role": roleDouble(nowhere),
};

/** Resources and properties that the program does not use and the doubles do not support. */
const UNUSED = [
  "postgresql.Database connectionLimit",
  "postgresql.Grant privileges",
  "docker.RemoteImage build context files",
];

const cases = Object.entries(observed).flatMap(([type, properties]) =>
  Object.entries(properties).map(
    ([property, { op }]) => [type, property, op] as const,
  ),
);

test("recorded cases exist", () => {
  expect(cases.length).toBeGreaterThanOrEqual(12);
  for (const known of UNUSED) {
    expect(cases.map(([type, property]) => `${type} ${property}`)).toContain(
      known,
    );
  }
});

test.each(
  cases.filter(([type, property]) => !UNUSED.includes(`${type} ${property}`)),
)("%s: a changed %s is %s", (type, property, op) => {
  const was: Values = { name: "it", [property]: "before" };
  const wanted: Values = { name: "it", [property]: "after" };
  if (type.endsWith(".Provider")) {
    expect(op).toBe("update");
    expect(diffProvider(was, wanted)).toEqual({ Changes: 2 });
    expect(diffProvider(was, { ...was })).toEqual({ Changes: 1 });
    return;
  }
  const double = doubles[type];
  if (double === undefined) {
    throw new Error(`no double of ${type}`);
  }
  expect(double.diff(was, wanted)).toEqual({
    replaces: op === "replace" ? [property] : [],
    updates: op === "update" ? [property] : [],
  });
  expect(double.diff(was, { ...was })).toEqual({ replaces: [], updates: [] });
});

test.each([
  ["docker.Network", "Network", "internal"],
  ["docker.Volume", "Volume", "driver"],
  ["docker.RemoteImage", "RemoteImage", "keepLocally"],
  ["postgresql.Role", "Role", "roles"],
])("%s: a change without a record is an error", (type, name, property) => {
  expect(() =>
    doubles[type]?.diff({ name: "it" }, { name: "it", [property]: true }),
  ).toThrow(
    `the doubles know no record of what a change of a ${name}'s ${property} does`,
  );
  expect(() =>
    doubles[type]?.diff({ name: "it", [property]: true }, { name: "it" }),
  ).toThrow("the doubles know no record");
});

test("properties that the plugin adds to an image's state are not a difference", () => {
  expect(
    doubles["docker.RemoteImage"]?.diff(
      { name: "it", imageId: "sha256:1" },
      { name: "it" },
    ),
  ).toEqual({ replaces: [], updates: [] });
});
