import { expect, test } from "vitest";
import { configHash, type ContainerSpec } from "./container.ts";

const spec: ContainerSpec = {
  name: "hearth-something",
  command: ["run"],
  user: "1000:0",
  environment: { LEVEL: "1" },
  files: [{ path: "/run/hearth/KEY", content: "key", permissions: "0440" }],
  ports: [{ address: "10.8.0.1", port: 80, inside: 80 }],
  volumes: [{ source: "hearth-data", path: "/data" }],
  networks: [{ name: "hearth", aliases: ["something"] }],
  memoryMiB: 128,
  capabilities: [],
  health: {
    test: ["CMD", "true"],
    interval: "10s",
    timeout: "5s",
    startPeriod: "5s",
    retries: 3,
  },
  graceSeconds: 10,
};

test.each<[string, Partial<ContainerSpec>]>([
  ["the health check", { health: { ...spec.health, interval: "20s" } }],
  ["a volume", { volumes: [{ source: "hearth-data", path: "/other" }] }],
  ["the environment", { environment: {} }],
  ["a capability", { capabilities: ["CAP_CHOWN"] }],
  ["the user", { user: "0:0" }],
  ["a network's alias", { networks: [{ name: "hearth", aliases: [] }] }],
  ["a limit that is set once", { sharedMemoryMiB: 64 }],
  ["a file that is not there any more", { files: [] }],
])("%s, when changed, replaces the container", (_what, change) => {
  expect(configHash({ ...spec, ...change })).not.toBe(configHash(spec));
});

test.each<[string, Partial<ContainerSpec>]>([
  ["memory, which is changed in place", { memoryMiB: 256 }],
  ["the reservation", { reservationMiB: 64 }],
  ["the time to stop, which counts in the state", { graceSeconds: 20 }],
  [
    "a file's content, which a label must not reveal",
    { files: [{ path: "/run/hearth/KEY", content: "x", permissions: "0440" }] },
  ],
])("the hash excludes %s", (_what, change) => {
  expect(configHash({ ...spec, ...change })).toBe(configHash(spec));
});

test("the order of an object's fields is not a change", () => {
  const turned = Object.fromEntries(Object.entries(spec).toReversed());
  expect(configHash(turned as unknown as ContainerSpec)).toBe(configHash(spec));
});
