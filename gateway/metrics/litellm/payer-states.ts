import {
  budgetStates,
  type BudgetState,
} from "../../admin/budgets-in-force.ts";
import { END_USER } from "../../admin/kinds/customer.ts";
import { KEY } from "../../admin/kinds/key.ts";
import { ORGANIZATION } from "../../admin/kinds/organization.ts";
import { TEAM } from "../../admin/kinds/team.ts";
import { USER } from "../../admin/kinds/user.ts";
import { DatabaseUnavailable, query } from "../../database/pool.ts";
import type { Gateway } from "../../gateway.ts";

/** Kinds of payers with a budget, by LiteLLM's word for each. */
const KINDS = {
  api_key: KEY,
  team: TEAM,
  user: USER,
  org: ORGANIZATION,
  customer: END_USER,
} as const;

export type PayerKind = keyof typeof KINDS;

interface TeamSize {
  readonly team_id: string;
  readonly team_alias: string | null;
  readonly members: number;
}

/** Payers as Postgres knows them at one moment. */
export interface PayerStates {
  readonly budgets: Readonly<Record<PayerKind, readonly BudgetState[]>>;
  readonly users: number;
  readonly teams: number;
  readonly teamSizes: readonly TeamSize[];
}

/** Two Prometheus servers, or one that is impatient, cost no more than one. */
const KEEP_MS = 5_000;

const TEAM_SIZES = `
  SELECT t.team_id, t.team_alias, count(m.user_id) AS members
    FROM (SELECT team_id, team_alias FROM teams ORDER BY created_at, team_id LIMIT $1) t LEFT JOIN team_members m USING (team_id)
    GROUP BY 1, 2`;

/**
 * Reads the states of payers with one statement for each kind, however many payers there are: at most `maxValues` of each kind,
 * those who used most of their budget first.
 */
export class PayerStateReader {
  readonly #gateway: Pick<Gateway, "database" | "pool">;
  readonly #maxValues: number;
  readonly #endUsers: boolean;
  #readAt = -Infinity;
  #states: Promise<PayerStates | null> = Promise.resolve(null);

  constructor(
    gateway: Pick<Gateway, "database" | "pool">,
    maxValues: number,
    endUsers: boolean,
  ) {
    this.#gateway = gateway;
    this.#maxValues = maxValues;
    this.#endUsers = endUsers;
  }

  /** null: Postgres is unavailable. */
  async read(): Promise<PayerStates | null> {
    if (!this.#gateway.database.connected()) {
      return null;
    }
    const now = performance.now();
    if (now - this.#readAt >= KEEP_MS) {
      this.#readAt = now;
      this.#states = this.#query();
    }
    try {
      return await this.#states;
    } catch (error) {
      this.#readAt = -Infinity;
      if (error instanceof DatabaseUnavailable) {
        return null;
      }
      throw error;
    }
  }

  async #query(): Promise<PayerStates> {
    const { pool } = this.#gateway;
    const max = this.#maxValues;
    const kinds = (Object.keys(KINDS) as PayerKind[]).filter(
      (kind) => kind !== "customer" || this.#endUsers,
    );
    const [counts] = await query<{ users: number; teams: number }>(
      pool,
      "SELECT (SELECT count(*) FROM users) AS users, (SELECT count(*) FROM teams) AS teams",
    );
    const budgets = { api_key: [], team: [], user: [], org: [], customer: [] };
    // One after the other: a scrape takes one connection of the pool.
    for (const kind of kinds) {
      Object.assign(budgets, {
        [kind]: await budgetStates(pool, KINDS[kind], max),
      });
    }
    return {
      budgets,
      users: counts?.users ?? 0,
      teams: counts?.teams ?? 0,
      teamSizes: await query<TeamSize & Record<string, unknown>>(
        pool,
        TEAM_SIZES,
        [max],
      ),
    };
  }
}
