import type { Load } from "./load-requests.ts";
import type { Run } from "./measure.ts";
import type { Added, Part, Results } from "./results.ts";

/** A goal of the gateway, as measured in one run. */
interface Goal {
  readonly name: string;
  readonly goal: string;
  readonly measured: string;
  readonly reached: boolean;
}

/** Goals of calls per second, as a share of the bare proxy's. */
const RATIOS: readonly (readonly [Load, number])[] = [
  ["plain", 0.35],
  ["stream", 0.7],
  ["cached", 0.6],
  ["50k", 0.35],
];
const MAIN_CONCURRENCY = 64;
/** Of the gateway, Redis and Postgres for a plain call at the main concurrency. */
const ALL_CPU_MS = 0.33;
/** Goals of the added latency in ms, at each of these rates. */
const TAIL = { p50: 0.8, p99: 5, p999: 15 } as const;
const TAIL_RATES = [250, 500, 1_000];
const TAIL_PARTS: readonly (readonly [Load, Part])[] = [
  ["plain", "answer"],
  ["stream", "first byte"],
];
const CACHED_P99_MS = 4;
const LONGEST_PAUSE_MS = 10;
const MEMORY_MB = 200;
const READY_MS = 1_000;
const CHUNK_MS = 0.2;
const LARGE_PROMPT_P50_MS = 2;
const MIX_HITS = 0.8;

/** Every goal that the run measured. */
export function goalsOf(results: Results): readonly Goal[] {
  const runs = results.runs.filter(({ target }) => target === "gateway");
  const added = results.added.filter(({ target }) => target === "gateway");
  return [
    ...RATIOS.flatMap((ratio) => rateGoal(results, ratio)),
    ...ceiling(
      `CPU of gateway, Redis and Postgres for a plain call at ${MAIN_CONCURRENCY} connections`,
      ALL_CPU_MS,
      "ms",
      runs
        .filter(
          ({ load, mode, concurrency }) =>
            load === "plain" &&
            mode === "closed" &&
            concurrency === MAIN_CONCURRENCY,
        )
        .flatMap(({ all_cpu_ms_per_call: spent }) => spent ?? []),
    ),
    ...TAIL_PARTS.flatMap(([load, part]) =>
      tailGoals(
        openRuns(runs).filter((run) => run.load === load),
        added.filter((each) => each.load === load && each.part === part),
        load === "plain" ? "plain calls" : `the ${part} of streams`,
      ),
    ),
    ...cachedGoal(openRuns(runs).filter(({ load }) => load === "cached")),
    ...chunkGoal(added),
    ...ceiling(
      "added to 50 kB prompts, p50",
      LARGE_PROMPT_P50_MS,
      "ms",
      added.filter(({ load }) => load === "50k").map(({ p50 }) => p50),
    ),
    ...ceiling(
      `longest pause of the event loop up to ${Math.max(...TAIL_RATES)} calls/s`,
      LONGEST_PAUSE_MS,
      "ms",
      longestPause(openRuns(runs)),
    ),
    ...ceiling("memory at most", MEMORY_MB, "MB", [
      results.gateway.rss_most_mb,
    ]),
    ...ceiling("ready after the start", READY_MS, "ms", [
      results.gateway.ready_ms,
    ]),
    ...mixGoal(runs),
  ];
}

/** Open loops at the rates that have goals. */
function openRuns(runs: readonly Run[]): readonly Run[] {
  return runs.filter(
    ({ mode, rate }) => mode === "open" && TAIL_RATES.includes(rate ?? 0),
  );
}

function rateGoal(
  { ratios }: Results,
  [load, share]: readonly [Load, number],
): readonly Goal[] {
  const found = ratios.find(
    (each) =>
      each.to === "bare" &&
      each.load === load &&
      each.concurrency === MAIN_CONCURRENCY,
  );
  return found === undefined
    ? []
    : [
        {
          name: `${load}, calls/s to bare at ${MAIN_CONCURRENCY} connections`,
          goal: `≥ ${share}`,
          measured: found.ratio.toFixed(2),
          reached: found.ratio >= share,
        },
      ];
}

/** One goal for each percentile, with what was measured at each rate. A rate that was not kept misses it. */
function tailGoals(
  runs: readonly Run[],
  added: readonly Added[],
  name: string,
): readonly Goal[] {
  return (["p50", "p99", "p999"] as const).flatMap((percentile) => {
    const values = runs.flatMap(({ rate, kept_rate }) => {
      const found = added.find((each) => each.rate === rate);
      const value = kept_rate ? (found?.[percentile] ?? null) : Infinity;
      return value === null ? [] : [{ rate, value }];
    });
    const rates = values.map(({ rate }) => rate).join(", ");
    return ceiling(
      `added to ${name} at ${rates} calls/s, ${percentile === "p999" ? "p99.9" : percentile}`,
      TAIL[percentile],
      "ms",
      values.map(({ value }) => value),
    );
  });
}

/** At the lowest rate: the goal is of what passing a chunk costs, not of queues. */
function chunkGoal(added: readonly Added[]): readonly Goal[] {
  const [quietest] = added
    .filter(({ per_chunk }) => per_chunk !== null)
    .toSorted((a, b) => a.rate - b.rate);
  return ceiling(
    `added to each streamed chunk at ${quietest?.rate} calls/s`,
    CHUNK_MS,
    "ms",
    quietest?.per_chunk == null ? [] : [quietest.per_chunk],
  );
}

function cachedGoal(runs: readonly Run[]): readonly Goal[] {
  return ceiling(
    `cached answers at ${runs.map(({ rate }) => rate).join(", ")} calls/s, p99`,
    CACHED_P99_MS,
    "ms",
    runs.map(({ kept_rate, latency_ms: latency }) =>
      kept_rate ? (latency?.p99 ?? Infinity) : Infinity,
    ),
  );
}

function longestPause(runs: readonly Run[]): readonly number[] {
  const delays = runs.flatMap(({ event_loop_delay_ms: delay }) => delay ?? []);
  return delays.length === 0 ? [] : [Math.max(...delays.map(({ max }) => max))];
}

function mixGoal(runs: readonly Run[]): readonly Goal[] {
  const alone = runs.find(
    ({ load, tenants }) => load === "mix" && tenants === 1,
  );
  return alone === undefined || alone.cache_hit_rate === null
    ? []
    : [
        {
          name: "hits in the mix of one tenant",
          goal: `> ${MIX_HITS * 100} %`,
          measured: `${(alone.cache_hit_rate * 100).toFixed(1)} %`,
          reached: alone.cache_hit_rate > MIX_HITS,
        },
      ];
}

/** A goal that every value is at most `limit`; none without values. */
function ceiling(
  name: string,
  limit: number,
  unit: string,
  values: readonly number[],
): readonly Goal[] {
  return values.length === 0
    ? []
    : [
        {
          name,
          goal: `≤ ${limit} ${unit}`,
          measured: measuredText(values, unit),
          reached: values.every((value) => value <= limit),
        },
      ];
}

function measuredText(values: readonly number[], unit: string): string {
  const texts = values.map((value) =>
    value === Infinity ? "not kept" : rounded(value),
  );
  return values.includes(Infinity)
    ? texts.join(", ")
    : `${texts.join(", ")} ${unit}`;
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toFixed(2)));
}
