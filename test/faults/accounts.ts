import { hash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Member, Testbed } from "./testbed.ts";

/** A key under test. */
export interface Account {
  readonly key: string;
  /** Sent with each call. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A budget under test; the judge compares it with the ledger's rows. */
export interface Budget {
  /** The ledger's name for the payer: `key:<hash>`, `user:<id>`, `team:<id>`. */
  readonly entity: string;
  readonly dollars: number;
  /** Whether it resets every day (UTC). */
  readonly daily: boolean;
  /** Calls by which it may be exceeded: 1, or one for each instance if Redis was unavailable. */
  readonly allowance: number;
}

export interface Accounts {
  readonly accounts: readonly Account[];
  readonly budgets: readonly Budget[];
}

/** The cost of the most expensive call of the load (see calls.ts); budgets are multiples of it. */
const MAX_CALL_COST = 10 * 0.000001 + 8 * 0.000002;

/** Keys of every kind: without a budget, with one (total or daily), of a user, of a team, with a tag, with few slots. */
export async function createAccounts(
  testbed: Testbed,
  by: Member,
  options: { readonly calls: number; readonly allowance?: number },
): Promise<Accounts> {
  const { calls, allowance = 1 } = options;
  const accounts: Account[] = [];
  const budgets: Budget[] = [];
  const suffix = randomBytes(4).toString("hex");
  const dollars = Math.round(calls * MAX_CALL_COST * 1e9) / 1e9;
  const user = `user-${suffix}`;
  const team = `team-${suffix}`;
  const tag = `tag-${suffix}`;
  await testbed.sql(
    "INSERT INTO users (user_id, max_budget) VALUES ($1, $2), ($3, NULL)",
    [user, dollars * 2, `free-${suffix}`],
  );
  await testbed.sql("INSERT INTO teams (team_id, max_budget) VALUES ($1, $2)", [
    team,
    dollars * 2,
  ]);
  await testbed.sql("INSERT INTO tags (name, max_budget) VALUES ($1, $2)", [
    tag,
    dollars,
  ]);
  const limit = (entity: string, amount: number, daily = false) =>
    void budgets.push({ entity, dollars: amount, daily, allowance });
  limit(`user:${user}`, dollars * 2);
  limit(`team:${team}`, dollars * 2);
  limit(`tag:${tag}`, dollars);

  async function add(
    fields: Readonly<Record<string, unknown>>,
    sent: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const key = await createKey(testbed, by, fields);
    accounts.push({ key, fields: sent });
    return entityOfKey(key);
  }

  await add({ user_id: `free-${suffix}`, tags: ["everyone"] });
  await add({}, { user: `end-user-${suffix}`, tags: ["other"] });
  await add({ max_parallel_requests: 2 });
  for (const _ of [1, 2]) {
    limit(await add({ max_budget: dollars }), dollars);
  }
  limit(
    await add({ max_budget: dollars, budget_duration: "1d" }),
    dollars,
    true,
  );
  for (const _ of [1, 2]) {
    await add({ user_id: user });
  }
  for (const _ of [1, 2]) {
    await add({ team_id: team });
  }
  await add({}, { tags: [tag] });
  return { accounts, budgets };
}

export async function createBudgetKey(
  testbed: Testbed,
  by: Member,
  dollars: number,
): Promise<{ readonly account: Account; readonly budget: Budget }> {
  const key = await createKey(testbed, by, { max_budget: dollars });
  return {
    account: { key, fields: {} },
    budget: { entity: entityOfKey(key), dollars, daily: false, allowance: 1 },
  };
}

/** The ledger's name for a key. */
export function entityOfKey(key: string): string {
  return `key:${hash("sha256", key)}`;
}

/** Creates a key; retries while the gateway reconnects to a database that was unavailable. */
export async function createKey(
  testbed: Testbed,
  by: Member,
  fields: Readonly<Record<string, unknown>>,
): Promise<string> {
  for (let tries = 0; ; tries++) {
    const created = await testbed.admin(by, "/key/generate", fields);
    if (created.status === 200) {
      return (JSON.parse(created.text) as { key: string }).key;
    }
    if (created.status !== 503 || tries > 40) {
      throw new Error(created.text);
    }
    await sleep(250);
  }
}
