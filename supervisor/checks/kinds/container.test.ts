import { expect, test } from "vitest";
import type {
  Runtime,
  ServiceStats,
  ServiceView,
} from "../../runtimes/runtime.ts";
import { CONTAINER_FACTS } from "../../../test/supervisor/container-facts.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";

function probe(
  more: Partial<ServiceView>,
  stats?: ServiceStats,
  before?: Readonly<Record<string, number>>,
) {
  const view: ServiceView = {
    name: "gateway",
    state: "running",
    since: 0,
    pid: 1,
    address: "",
    port: 1,
    adopted: false,
    tookMs: null,
    restarts: 0,
    reason: null,
    container: CONTAINER_FACTS,
    ...more,
  };
  const runtime: Runtime = {
    list: () => [view],
    inspect: () => view,
    probe: async (name) => (name === "gateway" ? view : undefined),
    logs: () => [],
    stats: () => stats,
    restart: async () => {},
  };
  return probeCheck(
    { kind: "container", container: "gateway" },
    { runtime, before },
  );
}

const memory = { memoryBytes: 97, memoryLimitBytes: 100, cpuSeconds: 1 };

test("a running, healthy container is up", async () => {
  expect(await probe({}, { ...memory, memoryBytes: 50 })).toMatchObject({
    ok: true,
    text: "running, 50 % of its memory",
    measures: { restarts: 0, memory_percent: 50, memory_bytes: 50 },
  });
});

test.each<[string, Partial<ServiceView>, string]>([
  [
    "unhealthy",
    {
      container: {
        ...CONTAINER_FACTS,
        health: "unhealthy",
        healthOutput: "connect\nrefused",
      },
    },
    "unhealthy: connect refused",
  ],
  ["ended", { state: "ended", reason: "exit code 1" }, "ended (exit code 1)"],
  [
    "killed by Docker: out of memory",
    {
      state: "ended",
      reason: "exit code 137",
      container: { ...CONTAINER_FACTS, oomKilled: true },
    },
    "killed: out of memory; ended (exit code 137)",
  ],
  ["gone", { state: "absent" }, "absent"],
])("one that is %s is down", async (_what, more, text) => {
  expect(await probe(more)).toMatchObject({ ok: false, level: "down", text });
});

test("full memory and a restart since the last probe are warnings", async () => {
  expect(await probe({}, memory)).toMatchObject({
    ok: false,
    level: "warning",
    text: "over 95 % of its memory is in use; running, 97 % of its memory",
  });
  const killed = {
    restarts: 2,
    container: { ...CONTAINER_FACTS, oomKilled: true },
  };
  expect(await probe(killed, undefined, { restarts: 1 })).toMatchObject({
    level: "warning",
    text: expect.stringMatching(/^it ran out of memory and was/),
  });
  expect((await probe(killed, undefined, { restarts: 2 })).ok).toBe(true);
});

test("a missing runtime or container is reported", async () => {
  const fields = { kind: "container", container: "gateway" };
  expect((await probeCheck(fields)).text).toContain("HEARTH_RUNTIME");
});
