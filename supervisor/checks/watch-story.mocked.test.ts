// Scenarios over minutes and hours, with a manual clock and simulated probes.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../core/duration.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { configSchema } from "../config/schema.ts";
import type { History } from "../history/history.ts";
import type { Runtime, ServiceView } from "../runtimes/runtime.ts";
import { CONTAINER_FACTS } from "../../test/supervisor/container-facts.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { incidents } from "./incidents.ts";
import type { ProbeResult } from "./kinds/probe.ts";
import { startWatch } from "./check-watch.ts";
import type { Watch } from "./watch.ts";
import type { CheckView } from "./watched.ts";
import { freePort, listen } from "../../test/servers/ports.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

const results = vi.hoisted(() => new Map<string, () => ProbeResult>());
vi.mock(import("./run-check.ts"), () => ({
  runCheck: async ({ name }, { now }) => {
    const { level = "down", ...result } = results.get(name)?.() ?? healthy;
    return { ...result, level, latencyMs: 1, measures: {}, at: now };
  },
}));

const healthy: ProbeResult = { ok: true, text: "answered 200" };
const unhealthy: ProbeResult = { ok: false, text: "answered 500" };

let history: History;
let watch: Watch;
let raised: Map<string, Alarm>;
/** Every raised or cleared alarm, in order. */
let alarms: string[];
let restarted: string[];
let services: Map<string, ServiceView>;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 22, 12) });
  history = temporaryHistory();
  results.clear();
  raised = new Map();
  alarms = [];
  restarted = [];
  services = new Map();
});
afterEach(() => {
  watch.stop();
  vi.useRealTimers();
});

function run(name: string, more: Partial<ServiceView> = {}): void {
  services.set(name, {
    name,
    state: "running",
    since: Date.now(),
    pid: 1,
    address: "",
    port: 1,
    adopted: false,
    tookMs: null,
    restarts: 0,
    reason: null,
    ...more,
  });
}

const runtime: Runtime = {
  list: () => [...services.values()],
  inspect: (name) => services.get(name),
  probe: async (name) => services.get(name),
  logs: () => [],
  stats: () => undefined,
  restart: async (name) => {
    restarted.push(name);
    run(name);
  },
};

function begin(
  checks: readonly Readonly<Record<string, unknown>>[],
  more: Readonly<Record<string, unknown>> = {},
): void {
  const config = configSchema.parse({
    checks: checks.map((check) => ({
      kind: "http",
      url: "http://127.0.0.1",
      ...check,
    })),
    ...more,
  });
  watch = startWatch({
    config,
    runtime,
    history,
    alarms: {
      ...alarmsIn(raised),
      raise: (alarm) => {
        if (!raised.has(alarm.fingerprint)) {
          alarms.push(alarm.text);
        }
        raised.set(alarm.fingerprint, alarm);
      },
      clear: (fingerprint) => {
        if (raised.delete(fingerprint)) {
          alarms.push(`over: ${fingerprint}`);
        }
      },
    },
    onChange: () => {},
    onError: (error) => {
      throw error;
    },
  });
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const setResult = (name: string, result: ProbeResult) =>
  results.set(name, () => result);
function view(name: string): CheckView {
  const found = watch.list().find((check) => check.name === name);
  if (found === undefined) {
    throw new Error(`there is no check ${name}`);
  }
  return found;
}

const heal = { restart: "gateway", max: 3, per: "1h", cooldown: "60s" };

test("a failing check is probed more often, is down after three failures, and its alarm lists the attempted fixes", async () => {
  run("gateway", { since: 0 });
  begin([{ name: "gateway", heal }]);
  await pass(MINUTE_MS);
  setResult("gateway", unhealthy);
  await pass(30 * SECOND_MS);
  expect(view("gateway").state).toBe("pending");
  await pass(11 * SECOND_MS);
  expect(view("gateway").state).toBe("down");
  expect(restarted).toEqual(["gateway"]);
  expect(raised.get("check:gateway")).toMatchObject({
    level: "down",
    subject: "gateway",
    output: "answered 500",
    tried: [expect.stringMatching(/^restarted gateway at \d\d:\d\d:\d\d \S+$/)],
    command: "hearth check gateway; hearth logs gateway",
  });
  setResult("gateway", healthy);
  await pass(MINUTE_MS);
  expect(view("gateway").state).toBe("up");
  expect(alarms).toEqual([
    expect.stringMatching(/^gateway is down since/),
    "over: check:gateway",
  ]);
});

test("an unhealthy service is restarted with growing delays, three times in an hour, then given up with a separate alarm", async () => {
  run("gateway", { since: 0 });
  setResult("gateway", unhealthy);
  begin([{ name: "gateway", heal }]);
  const times: number[] = [];
  const from = Date.now();
  for (let at = 0; at < 55 * 60; at += 5) {
    await pass(5 * SECOND_MS);
    while (times.length < restarted.length) {
      times.push(Math.round((Date.now() - from) / SECOND_MS));
    }
  }
  expect(times).toHaveLength(3);
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(60);
  expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThanOrEqual(120);
  expect(view("gateway").healing).toBe("gave up: restarted 3 times in 1 h");
  expect(alarms).toEqual([
    expect.stringMatching(/^gateway is down since/),
    expect.stringMatching(/^gateway is no longer restarted: gave up/),
  ]);
});

test("a slow start is pending during the grace period, without a restart", async () => {
  run("gateway");
  setResult("gateway", unhealthy);
  begin([{ name: "gateway", every: "5s", heal: { ...heal, grace: "60s" } }]);
  await pass(55 * SECOND_MS);
  expect(view("gateway")).toMatchObject({
    state: "pending",
    note: "gateway was just started",
  });
  expect(restarted).toEqual([]);
  await pass(20 * SECOND_MS);
  expect(view("gateway").state).toBe("down");
});

test.each(["waiting", "starting", "stopping", "backing-off"] as const)(
  "while its service is %s, as during a deployment, a check is pending for two minutes, then down",
  async (state) => {
    run("gateway", { since: 0 });
    begin([
      { name: "gateway", heal },
      { name: "ready", depends_on: ["gateway"] },
    ]);
    await pass(MINUTE_MS);
    setResult("gateway", unhealthy);
    setResult("ready", unhealthy);
    run("gateway", { state });
    await pass(110 * SECOND_MS);
    expect(view("gateway").state).toBe("pending");
    expect(view("ready").state).toBe("pending");
    expect(alarms).toEqual([]);
    await pass(50 * SECOND_MS);
    expect(view("gateway").state).toBe("down");
    expect(view("ready")).toMatchObject({
      state: "pending",
      inhibitedBy: "gateway",
    });
    expect(restarted).toEqual([]);
  },
);

test.each([
  ["a container", { container: CONTAINER_FACTS }],
  ["a program", {}],
])(
  "%s whose port is closed may be finishing its requests",
  async (what, more) => {
    run("gateway", { since: 0, ...more });
    begin([{ name: "gateway", heal }]);
    await pass(MINUTE_MS);
    setResult("gateway", {
      ok: false,
      text: "connect ECONNREFUSED",
      closed: true,
    });
    await pass(2 * MINUTE_MS);
    expect(view("gateway").state).toBe("down");
    expect(restarted).toEqual(what === "a container" ? [] : ["gateway"]);
    await pass(2 * MINUTE_MS);
    expect(restarted).toContain("gateway");
  },
);

test("a container of the other host has the same two minutes", async () => {
  run("gateway", { since: 0, container: CONTAINER_FACTS });
  begin([{ name: "postgres", service: "postgres" }]);
  await pass(MINUTE_MS);
  setResult("postgres", unhealthy);
  await pass(110 * SECOND_MS);
  expect(view("postgres").state).toBe("pending");
  await pass(60 * SECOND_MS);
  expect(view("postgres").state).toBe("down");
});

test("a check that is probed more often than its dependency is not blamed for it, and is judged separately when that recovers", async () => {
  run("gateway", { since: 0 });
  begin([
    { name: "postgres", every: "10m" },
    { name: "gateway", depends_on: ["postgres"], heal, every: "5s" },
    { name: "ready", depends_on: ["gateway"], every: "5s" },
  ]);
  await pass(MINUTE_MS);
  setResult("postgres", unhealthy);
  setResult("gateway", unhealthy);
  setResult("ready", unhealthy);
  await pass(10 * MINUTE_MS);
  expect(alarms).toEqual([expect.stringMatching(/^postgres is down/)]);
  expect(view("ready")).toMatchObject({
    state: "pending",
    inhibitedBy: "postgres",
    note: "waiting for postgres",
  });
  expect(restarted).toEqual([]);
  setResult("postgres", healthy);
  await pass(10 * MINUTE_MS);
  expect(view("gateway").state).toBe("down");
  expect(restarted[0]).toBe("gateway");
  expect(view("ready")).toMatchObject({ inhibitedBy: "gateway" });
});

test("a check has half a minute to reconnect after its dependency has recovered", async () => {
  begin([
    { name: "postgres", every: "5s" },
    { name: "ready", depends_on: ["postgres"], every: "5s" },
  ]);
  await pass(MINUTE_MS);
  setResult("postgres", unhealthy);
  setResult("ready", unhealthy);
  await pass(MINUTE_MS);
  setResult("postgres", healthy);
  await pass(25 * SECOND_MS);
  expect(view("postgres").state).toBe("up");
  expect(view("ready")).toMatchObject({
    state: "pending",
    note: "postgres has just recovered",
  });
  await pass(30 * SECOND_MS);
  expect(view("ready").state).toBe("down");
});

test("a warning is reported as such, without a restart and without excusing dependents", async () => {
  run("gateway", { since: 0 });
  setResult("postgres", {
    ok: false,
    level: "warning",
    text: "over 90 % of its connections are in use",
  });
  setResult("gateway", unhealthy);
  begin([
    { name: "postgres", heal: { restart: "gateway" } },
    { name: "gateway", depends_on: ["postgres"] },
  ]);
  await pass(5 * MINUTE_MS);
  expect(raised.get("check:postgres")).toMatchObject({ level: "warning" });
  expect(raised.get("check:gateway")).toMatchObject({ level: "down" });
  expect(restarted).toEqual([]);
});

test("a failure that a restart cannot fix is reported as down, without a restart, and excuses dependents", async () => {
  run("redis", { since: 0 });
  setResult("redis", {
    ok: false,
    text: "rejects writes (No space left on device)",
    restartFutile: true,
  });
  setResult("gateway", unhealthy);
  begin([
    { name: "redis", heal: { restart: "redis" } },
    { name: "gateway", depends_on: ["redis"] },
  ]);
  await pass(5 * MINUTE_MS);
  expect(raised.get("check:redis")).toMatchObject({ level: "down" });
  expect(raised.has("check:gateway")).toBe(false);
  expect(restarted).toEqual([]);
});

test("flapping is one alarm, which ends when the state is stable", async () => {
  let isHealthy = true;
  results.set("site", () => (isHealthy ? healthy : unhealthy));
  begin([{ name: "site", every: "10s", fail_after: 1, recover_after: 1 }]);
  for (let change = 0; change < 14; change += 1) {
    await pass(30 * SECOND_MS);
    isHealthy = !isHealthy;
  }
  const flapping = alarms.filter((text) => text.includes("is flapping"));
  expect(view("site").flapping).toBe(true);
  expect(alarms.length).toBeLessThanOrEqual(5);
  expect(raised.get("check:site")?.text).toContain("is flapping");
  expect(flapping.length).toBeLessThanOrEqual(1);
  const before = alarms.length;
  isHealthy = true;
  await pass(11 * MINUTE_MS);
  expect(raised.size).toBe(0);
  expect(alarms.slice(before)).toEqual(["over: check:site"]);
});

test.each(["pause", "maintenance"] as const)(
  "a %s ends the alarm of a flapping check and resets earlier failures",
  async (way) => {
    let isHealthy = true;
    results.set("site", () => (isHealthy ? healthy : unhealthy));
    begin([{ name: "site", every: "10s", fail_after: 1, recover_after: 1 }]);
    for (let change = 0; change < 9; change += 1) {
      await pass(30 * SECOND_MS);
      isHealthy = !isHealthy;
    }
    expect(raised.get("check:site")?.text).toContain("is flapping");
    if (way === "pause") {
      watch.pause("site", "moves house");
    } else {
      watch.maintenance.start(["site"], 60 * MINUTE_MS, "x", Date.now());
    }
    expect(raised.size).toBe(0);
    expect(view("site").flapping).toBe(false);
    await pass(MINUTE_MS);
    expect(raised.size).toBe(0);
  },
);

test("in maintenance there are no alarms or restarts, even on request; afterwards counts start at zero", async () => {
  run("gateway", { since: 0 });
  begin([{ name: "gateway" }, { name: "other", heal }]);
  await pass(MINUTE_MS);
  setResult("gateway", unhealthy);
  setResult("other", unhealthy);
  const now = Date.now();
  watch.maintenance.start(["gateway"], 60 * MINUTE_MS, "new disk", now);
  await pass(30 * MINUTE_MS);
  expect(view("gateway")).toMatchObject({
    state: "maintenance",
    note: "new disk",
    latest: { ok: false },
  });
  expect(restarted).toEqual([]);
  expect(alarms).toEqual([expect.stringMatching(/^other is down/)]);
  await pass(35 * MINUTE_MS);
  expect(view("gateway").state).toBe("down");
  expect(restarted.length).toBeGreaterThan(0);
  const changes = history.latest(100, "gateway");
  expect(changes.filter(({ from }) => from === "maintenance")).toEqual([
    expect.objectContaining({ to: "pending", reason: "answered 500" }),
  ]);
});

/** Only the clock is manual; the network takes real time. */
function moveClockOnly(): void {
  vi.useRealTimers();
  vi.useFakeTimers({
    now: Date.UTC(2026, 10, 22, 12),
    toFake: ["Date", "performance"],
  });
}

/** The result of the references is cached for 5 s. */
function expireReferences(): void {
  vi.advanceTimersByTime(6 * SECOND_MS);
}

test("an offline machine judges no check, reports it, and continues when it is online again", async () => {
  const { createServer } = await import("node:net");
  const server = createServer();
  moveClockOnly();
  const port = await freePort();
  setResult("site", unhealthy);
  begin([{ name: "site", every: "10ms", fail_after: 1 }], {
    offline: { references: [`tcp://127.0.0.1:${port}`] },
  });
  await vi.waitFor(() => expect(raised.size).toBe(1), 60_000);
  expect(alarms).toEqual([expect.stringMatching(/not counted until/)]);
  expect(view("site").state).toBe("new");
  const { id } = watch.maintenance.start(
    ["site"],
    60 * MINUTE_MS,
    "x",
    Date.now(),
  );
  expect(view("site").state).toBe("maintenance");
  watch.maintenance.end(id, Date.now());
  await vi.waitFor(() => expect(view("site").state).toBe("new"), 60_000);
  server.listen(port, "127.0.0.1");
  expireReferences();
  await vi.waitFor(() => expect(view("site").state).toBe("down"), 60_000);
  expect([...raised.keys()]).toEqual(["check:site"]);
  server.close();
});

test("the alarm of an offline machine ends after a restart that finds it online, without a failure", async () => {
  const { createServer } = await import("node:net");
  const server = createServer((socket) => socket.end());
  moveClockOnly();
  const port = await freePort();
  const offline = { references: [`tcp://127.0.0.1:${port}`] };
  const checks = [{ name: "site", every: "10ms" }];
  setResult("site", unhealthy);
  begin(checks, { offline });
  await vi.waitFor(() => expect(raised.size).toBe(1), 60_000);
  watch.stop();
  setResult("site", healthy);
  await listen(server, { port });
  begin(checks, { offline });
  await vi.waitFor(() => expect(view("site").state).toBe("up"), 60_000);
  expect([...raised.keys()]).toEqual([]);
  await new Promise((resolve) => server.close(resolve));
});

test("an offline machine restarts nothing, including pending restarts", async () => {
  const { createServer } = await import("node:net");
  const server = createServer((socket) => socket.end());
  moveClockOnly();
  const port = await listen(server);
  let probes = 0;
  results.set("site", () => {
    probes += 1;
    return unhealthy;
  });
  run("gateway", { since: 0 });
  const slow = { ...heal, cooldown: "10m" };
  begin([{ name: "site", every: "10ms", fail_after: 1, heal: slow }], {
    offline: { references: [`tcp://127.0.0.1:${port}`] },
  });
  const moreProbes = async () => {
    const before = probes;
    await vi.waitFor(() => expect(probes).toBeGreaterThan(before + 3), 60_000);
  };
  await vi.waitFor(() => expect(restarted).toEqual(["gateway"]), 60_000);
  // A service that was just restarted is excused for a while.
  vi.setSystemTime(Date.now() + 5 * MINUTE_MS);
  await moreProbes();
  await new Promise((resolve) => server.close(resolve));
  expireReferences();
  await vi.waitFor(
    () => expect([...raised.keys()]).toContain("supervisor:cut-off"),
    60_000,
  );
  vi.setSystemTime(Date.now() + 6 * MINUTE_MS);
  await moreProbes();
  expect(restarted).toEqual(["gateway"]);
  server.listen(port, "127.0.0.1");
  expireReferences();
  await vi.waitFor(() => expect(restarted).toHaveLength(2), 60_000);
  await new Promise((resolve) => server.close(resolve));
});

test("a restart of the supervisor keeps all state, restarts nothing immediately, and raises active alarms", async () => {
  run("gateway", { since: 0 });
  setResult("gateway", unhealthy);
  const checks = [
    { name: "gateway", heal },
    { name: "paused" },
    { name: "serviced" },
  ];
  begin(checks);
  await pass(10 * MINUTE_MS);
  expect(restarted).toHaveLength(3);
  watch.pause("paused", "moves house");
  watch.maintenance.start(["serviced"], 60 * MINUTE_MS, "new disk", Date.now());
  const since = view("gateway").since;
  watch.stop();
  await pass(MINUTE_MS);
  alarms = [];
  begin(checks);
  expect(view("gateway")).toMatchObject({ state: "down", since });
  await pass(5 * SECOND_MS);
  expect(restarted).toHaveLength(3);
  await pass(10 * MINUTE_MS);
  // The budget of the hour was used up.
  expect(restarted).toHaveLength(3);
  expect(view("gateway").healing).toMatch(/^gave up/);
  expect(view("paused")).toMatchObject({
    state: "paused",
    note: "moves house",
  });
  expect(view("serviced").state).toBe("maintenance");
  // Raised before and never cleared: not reported again.
  expect(alarms).toEqual([]);
});

test("a check that was removed from the configuration leaves no alarm behind", async () => {
  setResult("site", unhealthy);
  begin([{ name: "site" }, { name: "other" }]);
  await pass(2 * MINUTE_MS);
  expect([...raised.keys()]).toEqual(["check:site"]);
  watch.stop();
  begin([{ name: "other" }]);
  expect(raised.size).toBe(0);
});

test("a service that no check restarts any more leaves no alarm behind", async () => {
  run("gateway", { since: 0 });
  setResult("gateway", unhealthy);
  begin([{ name: "gateway", heal }]);
  await pass(20 * MINUTE_MS);
  expect([...raised.keys()]).toEqual(["check:gateway", "healing:gateway"]);
  watch.stop();
  begin([{ name: "gateway" }]);
  expect([...raised.keys()]).toEqual(["check:gateway"]);
});

test("a check that is removed or changes its kind while down is not an endless incident", async () => {
  setResult("site", unhealthy);
  setResult("shop", unhealthy);
  begin([{ name: "site" }, { name: "shop" }]);
  await pass(2 * MINUTE_MS);
  watch.stop();
  begin([{ name: "shop", kind: "certificate", url: "https://127.0.0.1:1" }]);
  expect(
    history
      .latest(2)
      .map(({ name, from, to, reason }) => `${name} ${from} ${to}: ${reason}`)
      .toSorted(),
  ).toEqual([
    "shop down new: changed to kind certificate",
    "site down paused: removed from the configuration",
  ]);
  const now = Date.now();
  const lasting = incidents(history.db, now - 60 * MINUTE_MS, now + MINUTE_MS);
  expect(lasting.filter(({ until }) => until === null)).toEqual([]);
});
