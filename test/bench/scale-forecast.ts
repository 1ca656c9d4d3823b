import { rounded } from "./measure.ts";

/** What one call costs each part. */
export interface CallCosts {
  readonly gateway_cpu_ms: number;
  readonly redis_cpu_ms: number;
  readonly postgres_cpu_ms: number;
  readonly redis_scripts: number;
  readonly ledger_bytes: number;
  readonly wal_bytes: number;
}

/** What calls need at a rate, by calculation: costs of a call times calls. */
export interface Forecast {
  readonly calls_per_second: number;
  readonly gateway_cores: number;
  /** Of the one core that Redis uses for commands. */
  readonly redis_core_percent: number;
  readonly redis_scripts_per_second: number;
  readonly ledger_rows_per_second: number;
  readonly postgres_cores: number;
  readonly ledger_gb_per_day: number;
  readonly wal_gb_per_day: number;
}

/** A part of a given size, and the calls per second at which it is fully used. */
export interface Ceiling {
  readonly part: string;
  readonly calls_per_second: number;
}

const DAY_SECONDS = 86_400;
const GB = 1e9;
const TB = 1e12;
const POSTGRES_CORES = 16;

export function forecast(costs: CallCosts, rate: number): Forecast {
  const cores = (ms: number) => rounded((rate * ms) / 1_000, 1);
  const perDay = (bytes: number) =>
    Math.round((rate * bytes * DAY_SECONDS) / GB);
  return {
    calls_per_second: rate,
    gateway_cores: cores(costs.gateway_cpu_ms),
    redis_core_percent: Math.round((rate * costs.redis_cpu_ms) / 10),
    redis_scripts_per_second: Math.round(rate * costs.redis_scripts),
    ledger_rows_per_second: rate,
    postgres_cores: cores(costs.postgres_cpu_ms),
    ledger_gb_per_day: perDay(costs.ledger_bytes),
    wal_gb_per_day: perDay(costs.wal_bytes),
  };
}

/** The parts of which there is one, first the one that is fully used first. Gateways are added. */
export function ceilingsOf(costs: CallCosts): readonly Ceiling[] {
  const ceilings = [
    {
      part: "Redis, which has one core for all commands,",
      calls_per_second: Math.round(1_000 / costs.redis_cpu_ms),
    },
    {
      part: `a Postgres with ${POSTGRES_CORES} cores`,
      calls_per_second: Math.round(
        (POSTGRES_CORES * 1_000) / costs.postgres_cpu_ms,
      ),
    },
    {
      part: "a disk for 1 TB of ledger a day",
      calls_per_second: Math.round(TB / costs.ledger_bytes / DAY_SECONDS),
    },
  ];
  return ceilings.toSorted(
    (one, other) => one.calls_per_second - other.calls_per_second,
  );
}
