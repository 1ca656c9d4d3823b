import { setTimeout as sleep } from "node:timers/promises";
import {
  createAccounts,
  type Account,
  type Accounts,
  type Budget,
} from "./accounts.ts";
import { startLoad, type Load, type Received } from "./calls.ts";
import { judge, type Verdict } from "./judge.ts";
import { leakedInRedis, leakedToCallers } from "./leases.ts";
import type { Random } from "./random.ts";
import type { Testbed } from "./testbed.ts";

/** How long campaigns run and where they log. */
export interface CampaignOptions {
  readonly random: Random;
  /** Rounds of kill -9; other campaigns repeat in proportion. */
  readonly rounds: number;
  /** Duration of the mixed campaign. */
  readonly minutes: number;
  /** How long Postgres and Redis are unavailable. */
  readonly outageMs: number;
  /** Whether to end the leases of killed gateways instead of waiting for their expiry. */
  readonly expireLeases: boolean;
  readonly log: (line: string) => void;
}

/** Load on a testbed, with the data needed to judge it afterwards. */
export interface Run {
  readonly received: Received[];
  readonly budgets: Budget[];
  readonly load: Load;
  /** Adds a response to a call that was not part of the load. */
  record(received: Received): void;
  /** Switches the load to new accounts. */
  renew(allowance?: number): Promise<Accounts>;
  /** Stops the load, waits until the journals are drained, and judges the run. */
  end(name: string): Promise<Verdict>;
}

interface RunOptions {
  readonly parallel?: number;
  readonly pauseMs?: number;
  readonly leaving?: number;
  /** Size of each budget, in calls. */
  readonly calls?: number;
  readonly allowance?: number;
}

/** Starts clients with accounts of every kind against all gateways of a testbed. */
export async function startRun(
  testbed: Testbed,
  options: CampaignOptions,
  runOptions: RunOptions = {},
): Promise<Run> {
  const { parallel = 6, pauseMs = 30, leaving = 0.1, calls = 25 } = runOptions;
  const received: Received[] = [];
  const budgets: Budget[] = [];
  let current: readonly Account[] = [];

  async function create(allowance: number): Promise<Accounts> {
    const [first] = testbed.gateways;
    if (first === undefined) {
      throw new Error("a testbed without a gateway");
    }
    const created = await createAccounts(testbed, first, { calls, allowance });
    budgets.push(...created.budgets);
    current = created.accounts;
    return created;
  }

  const { accounts } = await create(runOptions.allowance ?? 1);
  const load = startLoad({
    urls: testbed.gateways.map(({ url }) => url),
    accounts,
    random: options.random,
    parallel,
    pauseMs,
    leaving,
    onReceived: (one) => void received.push(one),
  });
  return {
    received,
    budgets,
    load,
    record: (one) => void received.push(one),
    async renew(allowance = runOptions.allowance ?? 1) {
      const created = await create(allowance);
      load.use(created.accounts);
      return created;
    },
    async end(name) {
      await load.stop();
      return finish(name, testbed, options, {
        received,
        budgets,
        accounts: current,
      });
    },
  };
}

/** Waits until the journals are drained, looks for leaks and judges the run. */
export async function finish(
  name: string,
  testbed: Testbed,
  options: CampaignOptions,
  results: {
    readonly received: Received[];
    readonly budgets: readonly Budget[];
    readonly accounts: readonly Account[];
  },
): Promise<Verdict> {
  await testbed.drained();
  const leaks = [
    ...(await leakedInRedis(testbed, options)),
    ...(await leakedToCallers(
      testbed,
      results.accounts.slice(0, PROBED_ACCOUNTS),
      results.budgets,
      (one) => void results.received.push(one),
    )),
  ];
  await testbed.drained();
  // The counters in Redis are updated shortly after a commit.
  await sleep(300);
  return judge(name, testbed, results.received, results.budgets, leaks);
}

/** Two without a limit, one with few slots, two with budgets. */
const PROBED_ACCOUNTS = 5;

/** Ids that reached the provider and are not in the ledger; checked between rounds to find the round that lost them. */
export async function missingNow(testbed: Testbed): Promise<readonly string[]> {
  await testbed.drained();
  const rows = await testbed.sql<{ request_id: string }>(
    "SELECT request_id FROM spend_log",
  );
  const known = new Set(rows.map((row) => row.request_id));
  return [...testbed.provider.requests].filter((id) => !known.has(id));
}
