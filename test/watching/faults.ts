import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryEntry } from "../../supervisor/history/history.ts";
import { fillDisk, freeDisk } from "../servers/small-disk.ts";
import type { FaultTestbed } from "./fault-testbed.ts";
import { waitFor } from "../wait-for.ts";

/** A fault to inject, and how it ends. */
export interface Fault {
  readonly name: string;
  readonly inject: (testbed: FaultTestbed) => Promise<void>;
  /** Whether the supervisor has reacted as expected: detected, restarted or alerted. */
  readonly handled: (
    testbed: FaultTestbed,
    entries: readonly HistoryEntry[],
  ) => boolean | Promise<boolean>;
  /** Ends the fault if it does not end automatically. */
  readonly fix: (testbed: FaultTestbed) => Promise<void>;
}

/** The consequences of one fault. Times in milliseconds since the fault. */
export interface FaultReport {
  readonly fault: string;
  readonly noticedMs: number;
  readonly noticed: string;
  /** The actions of the supervisor, in order. */
  readonly done: readonly string[];
  /** Alarms that were raised; an alert is sent for each that lasts half a minute. */
  readonly raised: readonly string[];
  /** Time from the fault, or from its fix if there was no restart, until everything was healthy. */
  readonly healthyAfterMs: number;
}

const PATIENCE = { withinMs: 15 * 60_000, everyMs: 100 };
const ACTS = ["restart", "heal"];

/** Injects a fault, waits until it is handled, fixes it, waits until everything is healthy, and reports what happened. */
export async function runFault(
  testbed: FaultTestbed,
  fault: Fault,
): Promise<FaultReport> {
  await waitFor(
    `everything to be healthy before: ${fault.name}`,
    () => isHealthy(testbed),
    PATIENCE,
  );
  const from = Date.now();
  await fault.inject(testbed);
  try {
    await waitFor(
      `the handling of: ${fault.name}`,
      async () => fault.handled(testbed, await testbed.since(from)),
      PATIENCE,
    );
  } finally {
    await fault.fix(testbed);
  }
  const fixed = Date.now();
  await waitFor(
    `everything to be healthy after: ${fault.name}`,
    () => isHealthy(testbed),
    PATIENCE,
  );
  const healthy = Date.now();
  const entries = await testbed.since(from);
  const first = entries.find(({ kind, to }) => kind !== "act" && to !== "up");
  const firstAct = entries.find(({ to }) => ACTS.includes(to));
  return {
    fault: fault.name,
    noticedMs: (first?.at ?? healthy) - from,
    noticed:
      first === undefined
        ? "nothing"
        : `${first.kind} ${first.name} ${first.to}`,
    done: entries
      .filter(({ kind, to }) => kind === "act" && ACTS.includes(to))
      .map(({ name, to }) =>
        to === "heal" ? `restarted ${name}` : `started ${name} again`,
      ),
    raised: entries
      .filter(({ to }) => to === "alarm")
      .map(({ reason }) => reason ?? ""),
    healthyAfterMs: healthy - (firstAct === undefined ? fixed : from),
  };
}

async function isHealthy(testbed: FaultTestbed): Promise<boolean> {
  const { services, checks } = await testbed.status();
  return (
    services.every(({ state }) => state === "running") &&
    checks.every(({ state }) => state === "up")
  );
}

const nothing = async () => {};
const isDown =
  (check: string) =>
  (_testbed: FaultTestbed, entries: readonly HistoryEntry[]): boolean =>
    entries.some(
      ({ kind, name, to }) =>
        kind === "check" && name === check && to === "down",
    );
const hasActed =
  (service: string) =>
  (_testbed: FaultTestbed, entries: readonly HistoryEntry[]): boolean =>
    entries.some(({ name, to }) => name === service && ACTS.includes(to));

export function killed(service: string): Fault {
  return {
    name: `${service} killed`,
    inject: async ({ pidOf }) => {
      process.kill(pidOf(service), "SIGKILL");
    },
    handled: hasActed(service),
    fix: nothing,
  };
}

/** `healed`: whether the service is restarted; otherwise the fault is only reported, and fixed by SIGCONT. */
export function hung(service: string, healed: boolean): Fault {
  let pid = 0;
  return {
    name: `${service} hung (SIGSTOP)`,
    inject: async ({ pidOf }) => {
      pid = pidOf(service);
      process.kill(pid, "SIGSTOP");
    },
    handled: healed ? hasActed(service) : isDown(service),
    fix: async () => {
      if (!healed) {
        process.kill(pid, "SIGCONT");
      }
    },
  };
}

export const answers500: Fault = {
  name: "gateway answers 500 until it is restarted",
  inject: async ({ proxy }) => proxy.fail({ kind: "status", status: 500 }),
  handled: hasActed("gateway"),
  fix: async ({ proxy }) => proxy.fail(undefined),
};

export const slow: Fault = {
  name: "gateway slow (3 s) until it is restarted",
  inject: async ({ proxy }) => proxy.fail({ kind: "slow", ms: 3000 }),
  handled: hasActed("gateway"),
  fix: async ({ proxy }) => proxy.fail(undefined),
};

/** Uses up the limit of restarts; then an operator intervenes. */
export const staysUnhealthy: Fault = {
  name: "gateway answers 500 after every restart",
  inject: async ({ proxy }) => proxy.fail({ kind: "status", status: 500 }),
  handled: async (testbed) => {
    const { checks } = await testbed.status();
    return checks.some(
      ({ healing }) => healing?.startsWith("gave up") === true,
    );
  },
  fix: async (testbed) => {
    testbed.proxy.fail(undefined);
    await testbed.restart("gateway");
  },
};

/** Kills the service and takes its port before it is restarted. */
export function portTaken(service: string, forMs: number): Fault {
  let blocker: Server | undefined;
  let injectedAt = 0;
  return {
    name: `${service} killed and its port taken`,
    inject: async ({ pidOf, portOf }) => {
      const pid = pidOf(service);
      const port = portOf(service);
      process.kill(pid, "SIGKILL");
      blocker = await takePort(port);
      injectedAt = Date.now();
    },
    handled: (_testbed, entries) =>
      Date.now() - injectedAt > forMs &&
      entries.some(({ name, to }) => name === service && to === "alarm"),
    fix: async () => {
      await new Promise((resolve) => blocker?.close(resolve) ?? resolve(null));
    },
  };
}

export const diskFull: Fault = {
  name: "the disk of the home full",
  inject: async ({ home }) => fillDisk(home),
  // The history cannot be written on a full disk; only the state shows the fault.
  handled: async (testbed) => {
    const { checks } = await testbed.status();
    return checks.some(
      ({ name, state }) => name === "disk" && state === "down",
    );
  },
  fix: async ({ home }) => freeDisk(home),
};

async function takePort(port: number): Promise<Server> {
  for (;;) {
    const server = createServer((socket) => socket.destroy());
    const taken = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (taken) {
      return server;
    }
    await sleep(5);
  }
}
