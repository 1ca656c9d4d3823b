import type { Client } from "pg";
import { Failure } from "../../core/failure.ts";
import { readCorrections, type Correction } from "./budgets.ts";
import {
  inSnapshot,
  joinPayers,
  readCallSums,
  readDaySpend,
  readPayerSums,
  sumOf,
  type CallSums,
  type DaySpend,
  type NamedSums,
  type PayerKind,
} from "./daily-sums.ts";
import { readForecastBasis, type ForecastBasis } from "./forecast.ts";
import { openKeeping, type Kept, type KeepLimits } from "./kept.ts";
import { rankPayers, type Payer } from "./payers.ts";
import { addDays, type Period } from "./period.ts";

/** Days as `2026-11-21`, first and last included. */
export type Days = Pick<Period, "from" | "until">;

/**
 * The ledger's sums for pages, as of a moment ago. Each throws a Failure when Postgres has not answered yet, StillReading when
 * it is about to.
 */
export interface SpendBook {
  readonly calls: (
    days: Days,
    today: string,
  ) => Promise<Kept<readonly CallSums[]>>;
  /** Dearest first. */
  readonly payers: (
    kind: PayerKind,
    period: Period,
    today: string,
  ) => Promise<Kept<readonly Payer[]>>;
  /** Day by day, of some payers. */
  readonly daysOf: (
    kind: PayerKind,
    ids: readonly string[],
    days: Days,
    today: string,
  ) => Promise<Kept<readonly DaySpend[]>>;
  readonly forecastBasis: (today: string) => Promise<Kept<ForecastBasis>>;
  readonly corrections: (
    period: Period,
  ) => Promise<Kept<readonly Correction[]>>;
}

/** Calls end today: their sums grow while one looks. */
const growing: KeepLimits = { freshMs: 2000, keepMs: 10_000 };
/** The same for what is kept again as part of something else. */
const current: KeepLimits = { freshMs: 2000, keepMs: 2000 };
/** Days that are over hardly change: only by calls that ended at midnight, and by names. */
const settled: KeepLimits = { freshMs: 60_000, keepMs: 900_000 };
const READ_WITHIN_MS = 60_000;

/** `databaseUrl` is asked each time: logins change while the supervisor runs. */
export function openSpendBook(
  databaseUrl: () => string | undefined,
  now: () => number,
): SpendBook {
  const keep = openKeeping(now);

  async function kept<T>(
    key: readonly string[],
    limits: KeepLimits,
    read: (client: Client) => Promise<T>,
  ): Promise<Kept<T>> {
    const url = databaseUrl();
    if (url === undefined) {
      throw new Failure(
        "what was spent is not known here: set SUPERVISOR_DATABASE_URL to Postgres's address with the role supervisor.",
      );
    }
    return keep(key.join(" "), limits, () =>
      inSnapshot(url, AbortSignal.timeout(READ_WITHIN_MS), read),
    );
  }

  /** What is over and what grows are kept apart: the page shows calls of a moment ago, and reads few rows for it. */
  async function inParts<T>(
    what: string,
    { from, until }: Days,
    today: string,
    read: (client: Client, days: Days) => Promise<T>,
    limitsToday = growing,
  ): Promise<Kept<readonly T[]>> {
    const yesterday = addDays(today, -1);
    const parts: (readonly [Days, KeepLimits])[] = [];
    if (from <= yesterday) {
      parts.push([{ from, until: until < today ? until : yesterday }, settled]);
    }
    if (until >= today) {
      parts.push([{ from: from < today ? today : from, until }, limitsToday]);
    }
    const all = await Promise.all(
      parts.map(([days, limits]) =>
        kept([what, days.from, days.until], limits, (client) =>
          read(client, days),
        ),
      ),
    );
    return {
      value: all.map(({ value }) => value),
      at: Math.min(...all.map(({ at }) => at)),
      trouble: all.find(({ trouble }) => trouble !== null)?.trouble ?? null,
    };
  }

  async function payersIn(
    kind: PayerKind,
    days: Days,
    today: string,
  ): Promise<Kept<readonly NamedSums[]>> {
    const parts = await inParts(
      kind,
      days,
      today,
      (client, part) => readPayerSums(client, kind, part.from, part.until),
      current,
    );
    return { ...parts, value: joinPayers(parts.value) };
  }

  return {
    calls: async (days, today) => {
      const parts = await inParts("calls", days, today, (client, part) =>
        readCallSums(client, part.from, part.until),
      );
      return { ...parts, value: parts.value.flat() };
    },
    payers: async (kind, period, today) => {
      const { from, until, previous } = period;
      // Ranking ten thousand keys takes longer than all else that a page does.
      const limits = until < today ? settled : { ...growing, freshMs: 5000 };
      const ranked = await keep(
        ["ranked", kind, from, until, previous.from, previous.until].join(" "),
        limits,
        async () => {
          const [now, before] = await Promise.all([
            payersIn(kind, period, today),
            payersIn(kind, previous, today),
          ]);
          const { spend } = sumOf(now.value);
          return {
            at: Math.min(now.at, before.at),
            trouble: now.trouble ?? before.trouble,
            value: rankPayers(now.value, before.value, spend),
          };
        },
      );
      return {
        ...ranked.value,
        trouble: ranked.trouble ?? ranked.value.trouble,
      };
    },
    daysOf: async (kind, ids, days, today) => {
      const what = ["days of", kind, ...ids].join(" ");
      const parts = await inParts(what, days, today, (client, part) =>
        readDaySpend(client, kind, ids, part.from, part.until),
      );
      return { ...parts, value: parts.value.flat() };
    },
    forecastBasis: (today) =>
      kept(["forecast", today], settled, (client) =>
        readForecastBasis(client, today),
      ),
    corrections: (period) =>
      kept(
        ["corrections", period.from, period.until],
        { freshMs: 10_000, keepMs: 60_000 },
        (client) => readCorrections(client, period),
      ),
  };
}
