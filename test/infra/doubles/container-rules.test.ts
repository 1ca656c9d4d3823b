import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  arrives,
  diffContainer,
  stateAfterCreate,
  stateAfterRefresh,
} from "./docker/container-rules.ts";

interface Observation {
  readonly op: "replace" | "update" | "same";
  readonly took_effect: boolean;
  readonly note: string;
}

const { properties } = JSON.parse(
  readFileSync(
    new URL("observed/docker-container.json", import.meta.url),
    "utf8",
  ),
) as { readonly properties: Readonly<Record<string, Observation>> };

/** Inputs before and after a case's change, where its name does not define them. */
const cases: Readonly<Record<string, readonly [object, object]>> = {
  "envs.order": [{ envs: ["A=1", "B=2"] }, { envs: ["B=2", "A=1"] }],
  "ports.order": [
    { ports: [{ internal: 1 }, { internal: 2 }] },
    { ports: [{ internal: 2 }, { internal: 1 }] },
  ],
  "memory.noswap": [{ memory: 64 }, { memory: 64 }],
  "healthcheck.add": [{}, { healthcheck: { interval: "10s" } }],
  "healthcheck.remove": [{ healthcheck: { interval: "10s" } }, {}],
  "healthcheck.interval": [
    { healthcheck: { interval: "10s" } },
    { healthcheck: { interval: "20s" } },
  ],
  "healthcheck.timeout": [
    { healthcheck: { timeout: "10s" } },
    { healthcheck: { timeout: "20s" } },
  ],
  "healthcheck.startPeriod": [
    { healthcheck: { startPeriod: "10s" } },
    { healthcheck: { startPeriod: "20s" } },
  ],
  cpus: [{ cpus: "1.0" }, { cpus: "1.5" }],
  // "case: list taken out".
  securityOpts: [{ securityOpts: ["no-new-privileges:true"] }, {}],
  "securityOpts.add": [{}, { securityOpts: ["no-new-privileges:true"] }],
  "uploads.add": [{}, { uploads: [{ file: "/a" }] }],
};

test("all recorded cases are covered", () => {
  expect(Object.keys(properties).length).toBeGreaterThanOrEqual(65);
});

test.each(Object.entries(properties))(
  "%s",
  (name, { op, took_effect: tookEffect }) => {
    const [property = "", part] = name.split(".");
    const of = (value: string) => ({
      [property]: part === undefined ? value : [{ [part]: value }],
    });
    const [before, after] = cases[name] ?? [of("before"), of("after")];
    const { replaces, updates } = diffContainer(
      stateAfterCreate({ ...before }),
      { ...after },
    );
    expect(
      replaces.length > 0 ? "replace" : updates.length > 0 ? "update" : "same",
    ).toBe(op);
    // Changes of the state alone took effect in later operations.
    const inState = [
      "destroyGraceSeconds",
      "wait",
      "waitTimeout",
      "removeVolumes",
    ];
    if (op === "update" && !inState.includes(property)) {
      expect(updates.some(arrives)).toBe(tookEffect);
    }
  },
);

test.each([
  ["60s always differs", { healthcheck: { interval: "60s" } }, "update"],
  ["1m0s does not", { healthcheck: { interval: "1m0s" } }, "same"],
  ["cpus 1 is replaced at every up", { cpus: "1" }, "replace"],
  ["cpus 1.0 is not", { cpus: "1.0" }, "same"],
  ["memory with memorySwap is quiet", { memory: 64, memorySwap: 64 }, "same"],
])("after a create: %s", (_what, inputs, op) => {
  const { replaces, updates } = diffContainer(stateAfterCreate(inputs), inputs);
  expect(
    replaces.length > 0 ? "replace" : updates.length > 0 ? "update" : "same",
  ).toBe(op);
});

test("a capability without CAP_ replaces after a refresh, not before", () => {
  const inputs = { capabilities: { adds: ["NET_BIND_SERVICE"] } };
  const created = stateAfterCreate(inputs);
  expect(diffContainer(created, inputs).replaces).toEqual([]);
  expect(diffContainer(stateAfterRefresh(created), inputs).replaces).toEqual([
    "capabilities",
  ]);
});

test("a property without a record is an error, not a guess", () => {
  expect(() => diffContainer({}, { gpus: "all" })).toThrow(
    "the doubles know no record of what a change of a container's gpus does",
  );
});
