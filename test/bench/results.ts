import { CHUNKS_PER_STREAM } from "./mock-answers.ts";
import type { Expenses } from "./expenses.ts";
import type { Load } from "./load-requests.ts";
import type { Machine } from "./machine.ts";
import { rounded, type Run } from "./measure.ts";
import type { TargetName } from "./plan.ts";
import type { Proof } from "./proofs.ts";

/** The results of a benchmark; `--json` prints them. */
export interface Results {
  readonly runs: readonly Run[];
  readonly ratios: readonly Ratio[];
  readonly added: readonly Added[];
  readonly proofs: readonly Proof[];
  readonly gateway: {
    /** Time from the start of its process to the first readiness response of 200. */
    readonly ready_ms: number;
    readonly rss_after_start_mb: number;
    readonly rss_most_mb: number;
    readonly rss_at_end_mb: number;
  };
  readonly expenses: Expenses;
  /** Steps skipped to keep `--quick` within its time. */
  readonly left_out: number;
  readonly machine: Machine;
}

/** The throughput of one target divided by that of another under the same load. */
export interface Ratio {
  readonly of: TargetName;
  readonly to: TargetName;
  readonly load: Load;
  readonly concurrency: number;
  readonly ratio: number;
}

/** The latency that a target adds to the provider's at a fixed rate of calls, in ms. */
export interface Added {
  readonly target: TargetName;
  readonly load: Load;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Latency added to a whole stream, per chunk. */
  readonly per_chunk: number | null;
}

export function ratiosOf(runs: readonly Run[]): readonly Ratio[] {
  const closed = runs.filter(({ mode }) => mode === "closed");
  return closed
    .filter(({ target }) => target === "gateway")
    .flatMap((ours) =>
      closed
        .filter(
          (other) =>
            other.target !== "gateway" &&
            other.load === ours.load &&
            other.concurrency === ours.concurrency &&
            other.calls > 0,
        )
        .map((other) => ({
          of: ours.target,
          to: other.target,
          load: ours.load,
          concurrency: ours.concurrency ?? 0,
          ratio: rounded(ours.calls_per_second / other.calls_per_second, 3),
        })),
    );
}

export function addedBy(runs: readonly Run[]): readonly Added[] {
  const open = runs.filter(({ mode }) => mode === "open");
  return open.flatMap((run) => {
    const alone = open.find(
      ({ target, load, rate }) =>
        target === "mock" && load === run.load && rate === run.rate,
    );
    if (
      run.target === "mock" ||
      run.latency_ms === null ||
      alone === undefined ||
      alone.latency_ms === null
    ) {
      return [];
    }
    const p50 = run.latency_ms.p50 - alone.latency_ms.p50;
    return [
      {
        target: run.target,
        load: run.load,
        rate: run.rate ?? 0,
        p50: rounded(p50, 3),
        p99: rounded(run.latency_ms.p99 - alone.latency_ms.p99, 3),
        per_chunk:
          run.load === "stream" ? rounded(p50 / CHUNKS_PER_STREAM, 4) : null,
      },
    ];
  });
}
