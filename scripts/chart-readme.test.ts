import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { pinnedImages } from "../infra/images/images.ts";
import { inProject } from "../infra/project-files.ts";
import { CHART_README, chartReadme, chartValues } from "./chart-readme.ts";

// The files of the chart; what they render is tested with Helm (test/kube/chart*.scenario.ts).

const CHART = "charts/hearth";
const read = (path: string) => readFileSync(inProject(path), "utf8");

interface Schema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
}
const schema = JSON.parse(read(`${CHART}/values.schema.json`)) as Schema;
const values = parse(read(`${CHART}/values.yaml`)) as Readonly<
  Record<string, unknown>
>;

test("the README has the values as `npm run settings` writes them, each with its meaning", async () => {
  expect(readFileSync(CHART_README, "utf8")).toBe(await chartReadme());
  expect(
    chartValues()
      .filter(({ meaning }) => meaning === "")
      .map(({ path }) => path),
  ).toEqual([]);
});

test("a value without a comment and a README without the marks are reported", async () => {
  const text =
    "# The first.\na: 1\nb:\n  c: 2\n# ── Other ──\n\n# All.\nd: {}\n";
  expect(chartValues(text).map(({ path, meaning }) => [path, meaning])).toEqual(
    [
      ["a", "The first."],
      ["b.c", ""],
      ["d", "All."],
    ],
  );
  await expect(chartReadme("# Nothing\n", text)).rejects.toThrow("lacks");
});

/** Paths of the values that a schema names; those of open mappings end there. */
function pathsOf(each: Schema, prefix = ""): readonly string[] {
  return each.properties === undefined
    ? [prefix]
    : Object.entries(each.properties).flatMap(([name, below]) =>
        pathsOf(below, prefix === "" ? name : `${prefix}.${name}`),
      );
}

test("the schema names every value, and no other but Helm's own", () => {
  const documented = chartValues().map(({ path }) => path);
  expect(pathsOf(schema).toSorted()).toEqual(
    [...documented, "global"].toSorted(),
  );
});

/** Mappings whose keys are the chart's: a misspelt value must not be ignored. */
function openMappings(each: Schema, path: string): readonly string[] {
  if (each.properties === undefined) {
    return [];
  }
  return [
    ...(each.additionalProperties === false ? [] : [path]),
    ...Object.entries(each.properties).flatMap(([name, below]) =>
      openMappings(below, `${path}/${name}`),
    ),
  ];
}

test("the schema accepts the defaults, and no unknown name anywhere", () => {
  const accepts = new Ajv2020({
    allErrors: true,
    allowUnionTypes: true,
  }).compile(schema);
  expect({ ok: accepts(values), errors: accepts.errors }).toEqual({
    ok: true,
    errors: null,
  });
  expect(openMappings(schema, "")).toEqual([]);
});

test("the chart has the version of the project", () => {
  const { version, appVersion } = parse(read(`${CHART}/Chart.yaml`)) as {
    readonly version: string;
    readonly appVersion: string;
  };
  const project = JSON.parse(read("package.json")) as {
    readonly version: string;
  };
  expect({ version, appVersion }).toEqual({
    version: project.version,
    appVersion: project.version,
  });
});

test("the images of others are those of the stack on two hosts", () => {
  const { images } = values as {
    readonly images: Readonly<
      Record<string, { readonly repository: string; readonly tag: string }>
    >;
  };
  for (const name of ["couchdb", "postgres", "redis"] as const) {
    const { repository, tag } = images[name] ?? { repository: "", tag: "" };
    expect(`${repository}:${tag}`).toBe(pinnedImages[name]);
  }
});

test.each([
  ["alerts.yaml", "config/prometheus/alerts.yaml"],
  ["dashboard.json", "config/grafana/hearth.json"],
  ["postgres-roles.sql", "config/postgres-roles.sql"],
])("%s of the chart is a link to %s", (file, target) => {
  const path = inProject(`${CHART}/files/${file}`);
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(realpathSync(path)).toBe(realpathSync(inProject(target)));
});
