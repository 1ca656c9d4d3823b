import type { Logger } from "pino";
import { textOf } from "../../core/failure.ts";
import type { ProviderBudget } from "../config/types.ts";
import type { Pool } from "../database/pool.ts";
import { readProviderSpend } from "../database/provider-spend.ts";
import { LIFETIME, windowAt, type Window } from "../ledger/budget-windows.ts";

/** A provider that has used up its budget. */
export interface UsedUp {
  readonly provider: string;
  /** Dollars. */
  readonly budget: number;
  /** Ms since the epoch; Infinity: never. */
  readonly resetsAt: number;
}

/** The sums of calls are read again when they are older. */
const FRESH_MS = 1_000;

interface Known {
  readonly window: string;
  /** Dollars. */
  readonly spend: number;
  /** By `performance.now()`. */
  readonly readAt: number;
}

interface ProviderBudgetsOptions {
  /** By provider, as the current configuration has them. */
  readonly budgets: () => ReadonlyMap<string, ProviderBudget>;
  readonly timeZone: string;
  /** With a deadline: calls wait for it. */
  readonly pool: Pool;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Budgets of whole providers (`provider_budget_config`): their deployments are passed over when the ledger has that much spend of
 * them. Nothing is reserved: they can be exceeded by the calls in flight and by those of the last second or two. While Postgres is
 * unavailable, the sums stay as they were last read.
 */
export class ProviderBudgets {
  readonly #options: ProviderBudgetsOptions;
  readonly #known = new Map<string, Known>();
  readonly #reading = new Map<string, Promise<void>>();

  constructor(options: ProviderBudgetsOptions) {
    this.#options = options;
  }

  /** Whether no provider has a budget, so that none has to be asked for. */
  get none(): boolean {
    return this.#options.budgets().size === 0;
  }

  /** The deployments whose providers have budget left, and the providers of the others. */
  async select<Candidate extends { readonly providerName: string }>(
    candidates: readonly Candidate[],
  ): Promise<{
    readonly usable: readonly Candidate[];
    readonly usedUp: readonly UsedUp[];
  }> {
    const names = [...new Set(candidates.map((each) => each.providerName))];
    const states = await Promise.all(names.map((name) => this.#usedUp(name)));
    const usedUp = states.filter((state) => state !== null);
    const without = new Set(usedUp.map(({ provider }) => provider));
    const usable = candidates.filter((each) => !without.has(each.providerName));
    return { usable, usedUp };
  }

  /** Dollars that remain of each budget, as last read. null: a sum could never be read. */
  async remaining(): Promise<ReadonlyMap<string, number> | null> {
    const remaining = new Map<string, number>();
    for (const [provider, own] of this.#options.budgets()) {
      const window = this.#windowOf(own);
      await this.#read(provider, window);
      const known = this.#knownIn(provider, window);
      if (known === null) {
        return null;
      }
      remaining.set(provider, Math.max(0, own.maxBudget - known.spend));
    }
    return remaining;
  }

  /** null: the provider has no budget, or some of it is left. Waits only for the first sum of a window. */
  async #usedUp(provider: string): Promise<UsedUp | null> {
    const own = this.#options.budgets().get(provider);
    if (own === undefined) {
      return null;
    }
    const { maxBudget } = own;
    const window = this.#windowOf(own);
    const known = this.#knownIn(provider, window);
    if (known === null) {
      await this.#read(provider, window);
    } else if (known.readAt + FRESH_MS <= performance.now()) {
      void this.#read(provider, window);
    }
    const spend = this.#knownIn(provider, window)?.spend ?? 0;
    return spend < maxBudget
      ? null
      : { provider, budget: maxBudget, resetsAt: window.end };
  }

  #windowOf({ budgetDuration }: ProviderBudget): Window {
    return budgetDuration === null
      ? LIFETIME
      : windowAt(budgetDuration, Date.now(), this.#options.timeZone);
  }

  #knownIn(provider: string, window: Window): Known | null {
    const known = this.#known.get(provider);
    return known?.window === window.name ? known : null;
  }

  /** Never throws: the last known sum, or none, stays. */
  #read(provider: string, window: Window): Promise<void> {
    const running = this.#reading.get(provider);
    if (running !== undefined) {
      return running;
    }
    const { pool, timeZone, log } = this.#options;
    const readAt = performance.now();
    const reading = readProviderSpend(pool, provider, window, timeZone)
      .then(
        (spend) =>
          void this.#known.set(provider, {
            window: window.name,
            spend,
            readAt,
          }),
        (error: unknown) =>
          log.warn(
            { provider },
            `the spend of a provider with a budget is unknown: ${textOf(error)}`,
          ),
      )
      .finally(() => this.#reading.delete(provider));
    this.#reading.set(provider, reading);
    return reading;
  }
}
