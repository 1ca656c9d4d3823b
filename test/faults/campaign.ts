import { setTimeout as sleep } from "node:timers/promises";
import {
  makeAccounts,
  type Account,
  type Accounts,
  type Budget,
} from "./accounts.ts";
import { startLoad, type Load, type Told } from "./calls.ts";
import { judge, type Verdict } from "./judge.ts";
import { leakedInRedis, leakedToCallers } from "./leases.ts";
import type { Random } from "./random.ts";
import type { Testbed } from "./testbed.ts";

/** How long and how loudly campaigns run. */
export interface CampaignOptions {
  readonly random: Random;
  /** Kill -9 rounds; other campaigns repeat in proportion. */
  readonly rounds: number;
  /** Of the mix of all. */
  readonly minutes: number;
  /** How long Postgres and Redis are away. */
  readonly awayMs: number;
  /** The leases of the killed are ended rather than waited for. */
  readonly hurry: boolean;
  readonly say: (line: string) => void;
}

/** Load on a testbed and everything that is needed to judge it afterwards. */
export interface Run {
  readonly told: Told[];
  readonly budgets: Budget[];
  readonly load: Load;
  /** Adds what others than the load were told. */
  heard(told: Told): void;
  /** From now on new accounts pay. */
  renew(allowance?: number): Promise<Accounts>;
  /** Ends the load, waits until all is drained, and compares. */
  end(name: string): Promise<Verdict>;
}

export interface RunOptions {
  readonly parallel?: number;
  readonly pauseMs?: number;
  readonly leaving?: number;
  /** Size of each budget, in calls. */
  readonly calls?: number;
  readonly allowance?: number;
}

/** Starts clients with accounts of every sort against all gateways of a testbed. */
export async function startRun(
  testbed: Testbed,
  options: CampaignOptions,
  shape: RunOptions = {},
): Promise<Run> {
  const { parallel = 6, pauseMs = 30, leaving = 0.1, calls = 25 } = shape;
  const told: Told[] = [];
  const budgets: Budget[] = [];
  let current: readonly Account[] = [];

  async function make(allowance: number): Promise<Accounts> {
    const [first] = testbed.gateways;
    if (first === undefined) {
      throw new Error("a testbed without a gateway");
    }
    const made = await makeAccounts(testbed, first, { calls, allowance });
    budgets.push(...made.budgets);
    current = made.accounts;
    return made;
  }

  const { accounts } = await make(shape.allowance ?? 1);
  const load = startLoad({
    urls: testbed.gateways.map(({ url }) => url),
    accounts,
    random: options.random,
    parallel,
    pauseMs,
    leaving,
    told: (one) => void told.push(one),
  });
  return {
    told,
    budgets,
    load,
    heard: (one) => void told.push(one),
    async renew(allowance = shape.allowance ?? 1) {
      const made = await make(allowance);
      load.use(made.accounts);
      return made;
    },
    async end(name) {
      await load.stop();
      return finish(name, testbed, options, {
        told,
        budgets,
        accounts: current,
      });
    },
  };
}

/** Waits until all is quiet, looks for leaks and compares. */
export async function finish(
  name: string,
  testbed: Testbed,
  options: CampaignOptions,
  played: {
    readonly told: Told[];
    readonly budgets: readonly Budget[];
    readonly accounts: readonly Account[];
  },
): Promise<Verdict> {
  await testbed.drained();
  const leaks = [
    ...(await leakedInRedis(testbed, options)),
    ...(await leakedToCallers(
      testbed,
      played.accounts.slice(0, PROBED_ACCOUNTS),
      played.budgets,
      (told) => void played.told.push(told),
    )),
  ];
  await testbed.drained();
  // The counters in Redis hear of a commit shortly after it.
  await sleep(300);
  return judge(name, testbed, played.told, played.budgets, leaks);
}

/** Free ones, one with few slots, two with budgets. */
const PROBED_ACCOUNTS = 5;

/** Ids that reached the provider and are missing now; between rounds, to find the round that lost them. */
export async function missingNow(testbed: Testbed): Promise<readonly string[]> {
  await testbed.drained();
  const rows = await testbed.sql<{ request_id: string }>(
    "SELECT request_id FROM spend_log",
  );
  const known = new Set(rows.map((row) => row.request_id));
  return [...testbed.provider.asked].filter((id) => !known.has(id));
}
