import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Failure } from "../../../core/failure.ts";
import type { History } from "../../history/history.ts";
import type { ServiceState, ServiceView } from "../runtime.ts";
import { configSchema } from "../../config/schema.ts";
import { startWatch } from "../../checks/check-watch.ts";
import { freePort } from "../../../test/servers/ports.ts";
import { alarmsIn } from "../../../test/supervisor/raised-alarms.ts";
import {
  startSmallEngine,
  type SmallEngine,
} from "../../../test/supervisor/small-engine.ts";
import { temporaryHistory } from "../../../test/supervisor/temporary-history.ts";
import { waitFor } from "../../../test/wait-for.ts";
import { ContainerRuntime } from "./container-runtime.ts";
import { openEngine } from "./engine.ts";

const quick = { probe: 20, measure: 20, absentAfter: 0, unknownAfter: 0 };
let history: History;
let engine: SmallEngine;
let runtime: ContainerRuntime;
let changes: string[];
let troubles: string[];

beforeEach(async () => {
  history = temporaryHistory();
  engine = await startSmallEngine();
  changes = [];
  troubles = [];
  mistake = undefined;
  for (const name of ["gateway", "couchdb", "socket-proxy"]) {
    engine.containers.set(`hearth-${name}`, {});
  }
  begin();
});
afterEach(async () => {
  await runtime.close();
  await engine.close();
});

/** Configuration problems that would prevent a start of the gateway. */
let mistake: string | undefined;

function begin(pace: Partial<typeof quick> = {}): void {
  runtime = new ContainerRuntime({
    prefix: "hearth",
    engine: openEngine(engine.dockerHost, "hearth-socket-proxy"),
    history,
    onChange: (view: ServiceView, before: ServiceState) =>
      changes.push(`${view.name}: ${before}, ${view.state}`),
    onTrouble: (sentence) => troubles.push(sentence),
    validate: async (name) => {
      if (name === "gateway" && mistake !== undefined) {
        throw new Failure(mistake);
      }
    },
    pace: { ...quick, ...pace },
  });
}

function acts(): readonly (string | null)[] {
  return history
    .latest(50)
    .filter(({ kind }) => kind === "act")
    .map(({ name, to, reason }) => `${name} ${to}: ${reason}`)
    .toReversed();
}

/** The socket proxy permits exactly this form. */
function eventsPath(since: string, until: string): string {
  return `/events?since=${since}&until=${until}&filters=%7B%22container%22%3A%5B%22hearth-gateway%22%5D%2C%22event%22%3A%5B%22oom%22%5D%7D`;
}

test("containers are listed by the names of services; others and the gate itself are not", async () => {
  engine.containers.set("stranger", {});
  engine.containers.set("hearth-else", { labels: {} });
  await runtime.start();
  expect(runtime.list().map(({ name, state }) => `${name} ${state}`)).toEqual([
    "gateway running",
    "notes running",
  ]);
  expect(runtime.inspect("notes")?.container?.id).toBe("id-of-hearth-couchdb");
  expect(await runtime.probe("else")).toBeUndefined();
  expect(await runtime.probe("stranger")).toBeUndefined();
  await expect(
    runtime.restart("else", "requested", "operator"),
  ).rejects.toThrow('container "else" not found; there are gateway, notes.');
  expect(engine.requests.filter((each) => each.startsWith("POST"))).toEqual([]);
});

test("memory is measured without the reclaimable cache, and CPU time", async () => {
  await runtime.start();
  expect(runtime.stats("gateway")).toEqual({
    memoryBytes: 40_000_000,
    memoryLimitBytes: 100_000_000,
    cpuSeconds: 2.5,
  });
});

test("both outputs are read in the order of writing", async () => {
  expect(await runtime.logs("gateway", 10)).toEqual(["one", "grüß"]);
  expect(await runtime.logs("gateway", 1)).toEqual(["grüß"]);
  await expect(runtime.logs("redis", 1)).rejects.toThrow(
    "redis: container not found; run `npm run deploy -- up --refresh`.",
  );
  vi.stubEnv("HEARTH_STACK", "trial");
  await expect(runtime.logs("redis", 1)).rejects.toThrow(
    "run `npm run deploy -- --stack trial up --refresh`.",
  );
  vi.unstubAllEnvs();
});

test("a restart on request is recorded once, and one by an operator has time to drain", async () => {
  await runtime.start();
  await runtime.restart("gateway", "requested by the operator", "operator");
  await runtime.restart("notes", "sick", "supervisor");
  expect(engine.requests.filter((each) => each.startsWith("POST"))).toEqual([
    "POST /containers/hearth-gateway/restart?t=150",
    "POST /containers/hearth-couchdb/restart?t=15",
  ]);
  expect(acts()).toEqual(["gateway restart-asked: requested by the operator"]);
});

test("a container that finishes its requests before a restart is stopping, and no check restarts it again", async () => {
  await runtime.start();
  const restarts = () =>
    engine.requests.filter((each) => each.startsWith("POST"));
  const stopped = Promise.withResolvers<void>();
  engine.stopped = stopped.promise;
  const restarting = runtime.restart("gateway", "requested", "operator");
  await waitFor("the order", () => restarts().length > 0);
  const draining = await runtime.probe("gateway");
  const watch = startWatch({
    config: configSchema.parse({
      checks: [
        {
          name: "gateway",
          kind: "http",
          url: `http://127.0.0.1:${await freePort()}`,
          fail_after: 1,
          heal: { restart: "gateway", grace: "1ms" },
        },
      ],
    }),
    runtime,
    history,
    alarms: alarmsIn(new Map()),
    onChange: () => {},
    onError: (error) => {
      throw error;
    },
  });
  await watch.probeNow("gateway");
  const check = await watch.probeNow("gateway");
  stopped.resolve();
  await restarting;
  watch.stop();
  expect(restarts()).toEqual(["POST /containers/hearth-gateway/restart?t=150"]);
  expect(draining).toMatchObject({ state: "stopping", reason: "requested" });
  expect(check).toMatchObject({
    state: "pending",
    note: "gateway is stopping",
  });
  expect(runtime.inspect("gateway")?.state).toBe("running");
  expect(changes).toEqual([
    "gateway: running, stopping",
    "gateway: stopping, running",
  ]);
});

test("a service that could not start again is not restarted", async () => {
  await runtime.start();
  mistake = "gateway.yaml:1: no list.";
  for (const by of ["operator", "supervisor"] as const) {
    await expect(runtime.restart("gateway", "requested", by)).rejects.toThrow(
      mistake,
    );
  }
  await runtime.restart("notes", "requested", "operator");
  expect(engine.requests.filter((each) => each.startsWith("POST"))).toEqual([
    "POST /containers/hearth-couchdb/restart?t=150",
  ]);
  expect(acts()).toEqual(["notes restart-asked: requested"]);
});

test("a restart by Docker is recorded with its reason", async () => {
  await runtime.start();
  engine.containers.set("hearth-gateway", {
    restarts: 1,
    state: {
      OOMKilled: true,
      StartedAt: "2026-01-02T04:00:00Z",
      Health: { Status: "starting" },
    },
  });
  await waitFor("the new start", () => acts().length > 0);
  expect(acts()).toEqual([
    "gateway restart: out of memory; restarted by Docker",
  ]);
  expect(changes).toEqual(["gateway: running, starting"]);
});

test("the reason of an end is known even if it is probed before the new start", async () => {
  await runtime.start();
  engine.containers.set("hearth-gateway", {
    restarts: 1,
    state: { Status: "restarting", OOMKilled: true },
  });
  await waitFor("its end", () => changes.length > 0);
  engine.containers.set("hearth-gateway", {
    restarts: 1,
    state: { OOMKilled: false, StartedAt: "2026-01-02T04:00:00Z" },
  });
  await waitFor("the new start", () => acts().length > 0);
  expect(acts()).toEqual([
    "gateway restart: out of memory; restarted by Docker",
  ]);
});

/** Docker 26 restarts the gateway at 04:00, and no longer reports how it ended. */
function restartWithoutTrace(): void {
  engine.containers.set("hearth-gateway", {
    restarts: 1,
    state: {
      ExitCode: 0,
      OOMKilled: false,
      StartedAt: "2026-01-02T04:00:00.5Z",
      FinishedAt: "2026-01-02T04:00:00.2Z",
    },
  });
}

const killed = {
  container: "hearth-gateway",
  action: "oom",
  at: "2026-01-02T04:00:00.1Z",
};

test("lack of memory is read from the events of an engine that forgets it at the restart", async () => {
  await runtime.start();
  engine.events.push({ ...killed, action: "die" }, killed);
  restartWithoutTrace();
  await waitFor("the new start", () => acts().length > 0);
  expect(acts()).toEqual([
    "gateway restart: out of memory; restarted by Docker",
  ]);
  // The check of the container, which probes later, gives the same reason.
  expect((await runtime.probe("gateway"))?.container?.oomKilled).toBe(true);
  expect(engine.requests.filter((each) => each.includes("/events"))).toEqual([
    `GET ${eventsPath("1767323045.678", "1767326400.500")}`,
  ]);
});

test("an end with another reason follows one by lack of memory", async () => {
  await runtime.start();
  engine.events.push(killed);
  restartWithoutTrace();
  await waitFor("the new start", () => acts().length > 0);
  engine.containers.set("hearth-gateway", {
    restarts: 2,
    state: { StartedAt: "2026-01-02T05:00:00Z" },
  });
  await waitFor("the next start", () => acts().length > 1);
  expect(acts().at(-1)).toBe("gateway restart: it ended; restarted by Docker");
  expect(runtime.inspect("gateway")?.container?.oomKilled).toBe(false);
});

test.each([
  ["of the run before", { ...killed, at: "2026-01-02T03:04:05Z" }],
  ["of the new run", { ...killed, at: "2026-01-02T04:00:01Z" }],
  ["of another name", { ...killed, container: "hearth-gateway-2" }],
  ["of a container that it replaced", { ...killed, id: "earlier" }],
])("an event %s is not its reason", async (_what, event) => {
  await runtime.start();
  engine.events.push(event);
  restartWithoutTrace();
  await waitFor("the new start", () => acts().length > 0);
  expect(acts()).toEqual(["gateway restart: it ended; restarted by Docker"]);
});

test("a proxy that denies events leaves the reason open", async () => {
  await runtime.start();
  engine.eventMode = "refuse";
  restartWithoutTrace();
  await waitFor("the new start", () => acts().length > 0);
  expect(acts()).toEqual(["gateway restart: it ended; restarted by Docker"]);
  expect(troubles).toEqual([]);
});

test("events are asked for only after a restart by Docker", async () => {
  await runtime.start();
  await runtime.restart("gateway", "requested", "operator");
  engine.containers.set("hearth-couchdb", {
    state: { StartedAt: "2026-01-02T04:00:00Z" },
  });
  await waitFor("a restart by hand", () => acts().length > 1);
  expect(acts()).toEqual([
    "gateway restart-asked: requested",
    "notes restart: its container was restarted",
  ]);
  expect(engine.requests.join()).not.toContain("/events");
});

test("the first start of a container that was only created is no restart", async () => {
  await runtime.start();
  engine.containers.set("hearth-gateway", {
    id: "another",
    state: {
      Status: "created",
      Running: false,
      StartedAt: "0001-01-01T00:00:00Z",
    },
  });
  await waitFor("its successor", () => acts().length > 0);
  engine.containers.set("hearth-gateway", { id: "another" });
  await waitFor(
    "its start",
    () => runtime.inspect("gateway")?.state === "running",
  );
  expect(acts()).toEqual(["gateway start: replaced by a new container"]);
});

test("a missing container waits for a deployment; its successor starts with reset counts", async () => {
  begin({ absentAfter: 60_000 });
  await runtime.start();
  engine.containers.delete("hearth-gateway");
  await waitFor("it to be missed", () => changes.length > 0);
  expect(runtime.inspect("gateway")).toMatchObject({
    state: "waiting",
    pid: null,
    reason: "container not found; a deployment may be replacing it",
  });
  engine.containers.set("hearth-gateway", { id: "another" });
  await waitFor("its successor", () => changes.length > 1);
  expect(changes).toEqual([
    "gateway: running, waiting",
    "gateway: waiting, running",
  ]);
  expect(acts()).toEqual(["gateway start: replaced by a new container"]);
});

test("a container that stays missing is absent and cannot be restarted", async () => {
  await runtime.start();
  engine.containers.delete("hearth-gateway");
  await waitFor(
    "absence",
    () => runtime.inspect("gateway")?.state === "absent",
  );
  await expect(
    runtime.restart("gateway", "requested", "operator"),
  ).rejects.toThrow("gateway: container not found");
});

test("an unreachable gate makes every state unknown until it is back", async () => {
  await runtime.start();
  engine.mode = "refuse";
  await waitFor(
    "not knowing",
    () => runtime.inspect("notes")?.state === "unknown",
  );
  expect(runtime.list().map(({ state }) => state)).toEqual([
    "unknown",
    "unknown",
  ]);
  expect(troubles).toEqual([
    "Docker answered 403: run `docker info` on this host.",
  ]);
  engine.mode = "answer";
  await waitFor("knowing", () => runtime.inspect("notes")?.state === "running");
  expect(changes).toEqual([]);
});

test("a host without a gate does not look empty", async () => {
  const { dockerHost } = engine;
  await engine.close();
  await runtime.start();
  expect(runtime.list()).toMatchObject([
    {
      name: "docker",
      state: "unknown",
      reason: expect.stringMatching(
        new RegExp(
          `^Docker at ${dockerHost} does not answer \\(.*ECONNREFUSED`,
        ),
      ) as string,
    },
  ]);
  await expect(runtime.probe("gateway")).rejects.toThrow("ECONNREFUSED");
});

test("every request to the engine has a deadline", async () => {
  engine.mode = "hang";
  const direct = openEngine(engine.dockerHost, "hearth-socket-proxy");
  await expect(direct.ask("GET", "/containers/json", 50)).rejects.toThrow(
    `Docker at ${engine.dockerHost} does not answer (no answer within`,
  );
  direct.close();
});

test("an invalid address is rejected with the accepted formats", () => {
  expect(() => openEngine("ssh://host", "hearth-socket-proxy")).toThrow(
    'DOCKER_HOST is "ssh://host": it must be tcp://HOST:PORT or unix:///PATH.',
  );
});
