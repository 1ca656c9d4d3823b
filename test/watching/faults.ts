import { createServer, type Server } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { HistoryEntry } from "../../supervisor/history/history.ts";
import { fillDisk, freeDisk } from "../servers/small-disk.ts";
import { until, type FaultTestbed } from "./fault-testbed.ts";

/** Something that goes wrong, and when it may end. */
export interface Fault {
  readonly name: string;
  readonly strike: (testbed: FaultTestbed) => Promise<void>;
  /** It has shown what it should: noticed, healed or told. */
  readonly shown: (
    testbed: FaultTestbed,
    entries: readonly HistoryEntry[],
  ) => boolean | Promise<boolean>;
  /** Ends it, where it does not end by itself. */
  readonly mend: (testbed: FaultTestbed) => Promise<void>;
}

/** What one fault led to. Milliseconds from the fault on. */
export interface FaultReport {
  readonly fault: string;
  readonly noticedMs: number;
  readonly noticed: string;
  /** What the supervisor did, in order. */
  readonly done: readonly string[];
  /** Alarms that were raised; people are told of what lasts for half a minute. */
  readonly raised: readonly string[];
  /** From the fault (or its end, where it had to be ended) until everything was well. */
  readonly wellAfterMs: number;
}

const LONGEST_MS = 15 * 60_000;
const ACTS = ["restart", "heal"];

/** Strikes, waits until it is shown, mends, waits until all is well, and says what happened. */
export async function runFault(
  testbed: FaultTestbed,
  fault: Fault,
): Promise<FaultReport> {
  await until(`all to be well before ${fault.name}`, LONGEST_MS, () =>
    isWell(testbed),
  );
  const from = Date.now();
  await fault.strike(testbed);
  try {
    await until(`${fault.name} to show`, LONGEST_MS, async () =>
      fault.shown(testbed, await testbed.since(from)),
    );
  } finally {
    await fault.mend(testbed);
  }
  const mended = Date.now();
  await until(`all to be well after ${fault.name}`, LONGEST_MS, () =>
    isWell(testbed),
  );
  const well = Date.now();
  const entries = await testbed.since(from);
  const first = entries.find(({ kind, to }) => kind !== "act" && to !== "up");
  const firstAct = entries.find(({ to }) => ACTS.includes(to));
  return {
    fault: fault.name,
    noticedMs: (first?.at ?? well) - from,
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
    wellAfterMs: well - (firstAct === undefined ? mended : from),
  };
}

async function isWell(testbed: FaultTestbed): Promise<boolean> {
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
    strike: async ({ pidOf }) => {
      process.kill(pidOf(service), "SIGKILL");
    },
    shown: hasActed(service),
    mend: nothing,
  };
}

/** Healed, where there is a rule for it; otherwise told, and woken again. */
export function hung(service: string, healed: boolean): Fault {
  let pid = 0;
  return {
    name: `${service} hung (SIGSTOP)`,
    strike: async ({ pidOf }) => {
      pid = pidOf(service);
      process.kill(pid, "SIGSTOP");
    },
    shown: healed ? hasActed(service) : isDown(service),
    mend: async () => {
      if (!healed) {
        process.kill(pid, "SIGCONT");
      }
    },
  };
}

export const answers500: Fault = {
  name: "gateway answers 500 until it is restarted",
  strike: async ({ proxy }) => proxy.be({ kind: "status", status: 500 }),
  shown: hasActed("gateway"),
  mend: async ({ proxy }) => proxy.be(undefined),
};

export const slow: Fault = {
  name: "gateway slow (3 s) until it is restarted",
  strike: async ({ proxy }) => proxy.be({ kind: "slow", ms: 3000 }),
  shown: hasActed("gateway"),
  mend: async ({ proxy }) => proxy.be(undefined),
};

/** The budget is used up, and then somebody takes it in hand. */
export const staysSick: Fault = {
  name: "gateway answers 500, whatever is done",
  strike: async ({ proxy }) => proxy.be({ kind: "status", status: 500 }),
  shown: async (testbed) => {
    const { checks } = await testbed.status();
    return checks.some(
      ({ healing }) => healing?.startsWith("gave up") === true,
    );
  },
  mend: async (testbed) => {
    testbed.proxy.be(undefined);
    await testbed.restart("gateway");
  },
};

/** Killed, and another program sits on its port before it is back. */
export function portTaken(service: string, forMs: number): Fault {
  let thief: Server | undefined;
  let struckAt = 0;
  return {
    name: `${service} killed and its port taken`,
    strike: async ({ pidOf, portOf }) => {
      const pid = pidOf(service);
      const port = portOf(service);
      process.kill(pid, "SIGKILL");
      thief = await takePort(port);
      struckAt = Date.now();
    },
    shown: (_testbed, entries) =>
      Date.now() - struckAt > forMs &&
      entries.some(({ name, to }) => name === service && to === "alarm"),
    mend: async () => {
      await new Promise((resolve) => thief?.close(resolve) ?? resolve(null));
    },
  };
}

export const diskFull: Fault = {
  name: "the disk of the home full",
  strike: async ({ home }) => fillDisk(home),
  // The history cannot be written either: the state alone shows it.
  shown: async (testbed) => {
    const { checks } = await testbed.status();
    return checks.some(
      ({ name, state }) => name === "disk" && state === "down",
    );
  },
  mend: async ({ home }) => freeDisk(home),
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
    await wait(5);
  }
}
