import type { Client } from "pg";
import { MINUTE_MS } from "../../core/duration.ts";
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
import { openLedgerDay, type LedgerDay } from "./ledger-day.ts";
import { openReadCache, type Cached, type CacheLimits } from "./read-cache.ts";
import { rankPayers, type Payer } from "./payers.ts";
import { addDays, type Period } from "./period.ts";

/** Days as `2026-11-21`, first and last included. */
type Days = Pick<Period, "from" | "until">;

/** Sums of today, which grow while a page is open. */
const GROWING: CacheLimits = { freshMs: 2000, staleMs: 10_000 };
/** The same for values that are cached again as part of others. */
const CURRENT: CacheLimits = { freshMs: 2000, staleMs: 2000 };
/** Past days change only by calls that ended at midnight, and by names. */
const SETTLED: CacheLimits = { freshMs: 60_000, staleMs: 900_000 };
/** Ranking ten thousand keys takes longer than the other parts of a page. */
const RANKED: CacheLimits = { freshMs: 5000, staleMs: 10_000 };
const CORRECTED: CacheLimits = { freshMs: 10_000, staleMs: 60_000 };
const READ_TIMEOUT_MS = MINUTE_MS;

/**
 * Cached sums of the ledger for pages. Methods throw a Failure if Postgres has not answered yet, StillReading while the first
 * answer is pending.
 */
export class SpendReader {
  readonly #databaseUrl: () => string | undefined;
  readonly #cache: ReturnType<typeof openReadCache>;
  readonly #ledgerDay: LedgerDay;
  readonly #now: () => number;

  /** `databaseUrl` is read for each query, because logins change while the supervisor runs. */
  constructor(
    databaseUrl: () => string | undefined,
    timeZone: string,
    now: () => number,
  ) {
    this.#databaseUrl = databaseUrl;
    this.#cache = openReadCache(now);
    this.#ledgerDay = openLedgerDay(databaseUrl, timeZone, now);
    this.#now = now;
  }

  /** The ledger's current day. */
  today(): Promise<string> {
    return this.#ledgerDay(this.#now());
  }

  async calls(days: Days, today: string): Promise<Cached<readonly CallSums[]>> {
    const parts = await this.#inParts("calls", days, today, (client, part) =>
      readCallSums(client, part.from, part.until),
    );
    return { ...parts, value: parts.value.flat() };
  }

  /** Highest spend first. */
  async payers(
    kind: PayerKind,
    period: Period,
    today: string,
  ): Promise<Cached<readonly Payer[]>> {
    const { from, until, previous } = period;
    const ranked = await this.#cache(
      ["ranked", kind, from, until, previous.from, previous.until].join(" "),
      until < today ? SETTLED : RANKED,
      async () => {
        const [now, before] = await Promise.all([
          this.#payersIn(kind, period, today),
          this.#payersIn(kind, previous, today),
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
  }

  /** The days of some payers. */
  async daysOf(
    kind: PayerKind,
    ids: readonly string[],
    days: Days,
    today: string,
  ): Promise<Cached<readonly DaySpend[]>> {
    const what = ["days of", kind, ...ids].join(" ");
    const parts = await this.#inParts(what, days, today, (client, part) =>
      readDaySpend(client, kind, ids, part.from, part.until),
    );
    return { ...parts, value: parts.value.flat() };
  }

  forecastBasis(today: string): Promise<Cached<ForecastBasis>> {
    return this.#kept(["forecast", today], SETTLED, (client) =>
      readForecastBasis(client, today),
    );
  }

  corrections(period: Period): Promise<Cached<readonly Correction[]>> {
    return this.#kept(
      ["corrections", period.from, period.until],
      CORRECTED,
      (client) => readCorrections(client, period),
    );
  }

  async #payersIn(
    kind: PayerKind,
    days: Days,
    today: string,
  ): Promise<Cached<readonly NamedSums[]>> {
    const parts = await this.#inParts(
      kind,
      days,
      today,
      (client, part) => readPayerSums(client, kind, part.from, part.until),
      CURRENT,
    );
    return { ...parts, value: joinPayers(parts.value) };
  }

  /** Past days and today are cached separately: a page shows current calls and reads few rows for them. */
  async #inParts<T>(
    what: string,
    { from, until }: Days,
    today: string,
    read: (client: Client, days: Days) => Promise<T>,
    limitsToday: CacheLimits = GROWING,
  ): Promise<Cached<readonly T[]>> {
    const yesterday = addDays(today, -1);
    const parts: (readonly [Days, CacheLimits])[] = [];
    if (from <= yesterday) {
      parts.push([{ from, until: until < today ? until : yesterday }, SETTLED]);
    }
    if (until >= today) {
      parts.push([{ from: from < today ? today : from, until }, limitsToday]);
    }
    const all = await Promise.all(
      parts.map(([days, limits]) =>
        this.#kept([what, days.from, days.until], limits, (client) =>
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

  async #kept<T>(
    key: readonly string[],
    limits: CacheLimits,
    read: (client: Client) => Promise<T>,
  ): Promise<Cached<T>> {
    const url = this.#databaseUrl();
    if (url === undefined) {
      throw new Failure(
        "spend is not available here: set SUPERVISOR_DATABASE_URL to the address of Postgres with the role supervisor.",
      );
    }
    return this.#cache(key.join(" "), limits, () =>
      inSnapshot(url, AbortSignal.timeout(READ_TIMEOUT_MS), read),
    );
  }
}
