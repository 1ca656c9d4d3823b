import { createServer, type Server, type ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { configSchema } from "../config/schema.ts";
import type { History } from "../history/history.ts";
import type { Runtime, ServiceView } from "../runtimes/runtime.ts";
import { listen } from "../../test/servers/ports.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { waitFor } from "../../test/wait-for.ts";
import { startWatch } from "./check-watch.ts";
import type { Watch, WatchOptions } from "./watch.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

let history: History;
let watch: Watch | undefined;
let server: Server;
let port: number;
/** Paths that answer 500. */
let unhealthy: Set<string>;
let restarted: string[];
let raised: Map<string, Alarm>;

beforeEach(async () => {
  history = temporaryHistory();
  unhealthy = new Set();
  restarted = [];
  raised = new Map();
  server = createServer((request, response) => {
    response.writeHead(unhealthy.has(request.url ?? "") ? 500 : 200).end();
  });
  port = await listen(server);
});
afterEach(() => {
  watch?.stop();
  server.closeAllConnections();
  server.close();
});

/** Services that have been running for long; a restart fixes their path if `heals`. */
function runtime(heals: boolean, facts: Partial<ServiceView> = {}): Runtime {
  const view = (name: string): ServiceView => ({
    name,
    state: "running",
    since: 0,
    pid: 1,
    address: "",
    port: 1,
    adopted: false,
    tookMs: null,
    restarts: 0,
    reason: null,
    ...facts,
  });
  return {
    list: () => [],
    inspect: view,
    probe: async (name) => view(name),
    logs: () => [],
    stats: () => undefined,
    restart: async (name) => {
      restarted.push(name);
      if (heals) {
        unhealthy.delete(`/${name}`);
      }
    },
  };
}

function begin(
  heals: boolean,
  checks: readonly Record<string, unknown>[],
  more: Partial<Pick<WatchOptions, "now" | "awake" | "runtime">> = {},
): Watch {
  const config = configSchema.parse({
    checks: checks.map((check) => ({
      kind: "http",
      url: `http://127.0.0.1:${port}/${String(check["name"])}`,
      every: "20ms",
      fail_after: 2,
      ...check,
    })),
  });
  watch = startWatch({
    config,
    runtime: runtime(heals),
    ...more,
    history,
    alarms: alarmsIn(raised),
    onChange: () => {},
    onError: (error) => {
      throw error;
    },
  });
  return watch;
}

function stateOf(name: string): string | undefined {
  return watch?.list().find((check) => check.name === name)?.state;
}

const heal = { restart: "gateway", cooldown: "10ms", max: 2, grace: "1ms" };

test("a pod is not restarted: Kubernetes does so", async () => {
  const pod = {
    uid: "a",
    node: "node-1",
    component: "gateway",
    containers: [],
    notReadySince: null,
    isStuck: false,
    lastEnd: null,
    restartCommand: null,
  };
  begin(true, [{ name: "gateway", heal }], { runtime: runtime(true, { pod }) });
  unhealthy.add("/gateway");
  await waitFor("down", () => stateOf("gateway") === "down");
  const probes = () => watch?.list()[0]?.latest?.at ?? 0;
  const downSince = probes();
  await waitFor("more probes", () => probes() > downSince + 100);
  expect(restarted).toEqual([]);
  expect(history.latest(20).filter(({ kind }) => kind === "act")).toEqual([]);
});

test("a check that is down restarts its service, is up again, and the history records it", async () => {
  begin(true, [{ name: "gateway", heal }]);
  await waitFor("up", () => stateOf("gateway") === "up");
  unhealthy.add("/gateway");
  await waitFor("the restart", () => restarted.length === 1);
  await waitFor("up again", () => stateOf("gateway") === "up");
  expect(restarted).toEqual(["gateway"]);
  const recorded = history
    .latest(20)
    .toReversed()
    .map(({ kind, to }) => `${kind} ${to}`);
  expect(recorded).toEqual([
    "check up",
    "check pending",
    "check down",
    "act heal",
    "check up",
  ]);
});

test("an unhealthy service is restarted within its budget, then given up", async () => {
  unhealthy.add("/gateway");
  begin(false, [{ name: "gateway", heal }]);
  const view = await waitFor("giving up", () =>
    watch?.list().find(({ healing }) => healing !== null),
  );
  expect(view.healing).toBe("gave up: restarted 2 times in 1 h");
  expect(view.state).toBe("down");
  expect(restarted).toHaveLength(2);
  watch?.resetHealing("gateway");
  await waitFor("another restart", () => restarted.length === 4);
});

test("a check with an unhealthy dependency is displayed, without an alarm or restart", async () => {
  unhealthy.add("/store").add("/gateway");
  begin(false, [
    { name: "store" },
    { name: "gateway", depends_on: ["store"], heal },
  ]);
  const view = await waitFor("the store down", () =>
    watch
      ?.list()
      .find(
        ({ name, state }) =>
          name === "gateway" &&
          state === "pending" &&
          stateOf("store") === "down",
      ),
  );
  expect(view.inhibitedBy).toBe("store");
  await watch?.probeNow("gateway");
  expect(restarted).toEqual([]);
});

test("the dependency is probed again immediately before a restart", async () => {
  begin(false, [
    { name: "store", every: "1h", fail_after: 1 },
    { name: "gateway", depends_on: ["store"], heal },
  ]);
  await waitFor(
    "both up",
    () => stateOf("gateway") === "up" && stateOf("store") === "up",
  );
  unhealthy.add("/store").add("/gateway");
  await waitFor("the store found down", () => stateOf("store") === "down");
  await watch?.probeNow("gateway");
  expect(stateOf("gateway")).toBe("pending");
  expect(restarted).toEqual([]);
  expect([...raised.keys()]).toEqual(["check:store"]);
});

test("a check on demand does not show the result of a probe that was in progress", async () => {
  const asked: ServerResponse[] = [];
  server.removeAllListeners("request");
  server.on("request", (_request, response) => asked.push(response));
  begin(false, [{ name: "store", every: "1h" }]);
  await waitFor("the first probe", () => asked.length === 1);
  const now = watch?.probeNow("store");
  asked[0]?.writeHead(500).end();
  await waitFor("the second probe", () => asked.length === 2);
  asked[1]?.end();
  expect((await now)?.latest).toMatchObject({ ok: true });
});

test("after a sleep or a clock change, failures are counted from zero before a restart", async () => {
  let now = Date.now();
  begin(false, [{ name: "gateway", heal, fail_after: 3 }], {
    now: () => now,
    awake: () => 0,
  });
  await waitFor("up", () => stateOf("gateway") === "up");
  unhealthy.add("/gateway");
  // The clock jumps with every probe: failures never add up.
  let probes = 0;
  while (probes < 10) {
    now += probes % 2 === 0 ? 8 * HOUR_MS : -60_000;
    await watch?.probeNow("gateway");
    probes += 1;
  }
  expect(stateOf("gateway")).toBe("pending");
  expect(restarted).toEqual([]);
  await waitFor("the restart", () => restarted.length > 0);
});
