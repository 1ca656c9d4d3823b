import { CHUNKS_PER_STREAM } from "./mock-answers.ts";
import type { Expenses } from "./expenses.ts";
import type { Load } from "./load-requests.ts";
import type { Frontier } from "./frontier.ts";
import type { Machine } from "./machine.ts";
import { rounded, type Run } from "./measure.ts";
import type { TargetName } from "./plan.ts";
import type { InstalledPeer } from "./peers.ts";
import type { Proof } from "./proofs.ts";

/** The results of a benchmark; `--json` prints them. */
export interface Results {
  readonly runs: readonly Run[];
  readonly ratios: readonly Ratio[];
  readonly added: readonly Added[];
  readonly frontier: readonly Frontier[];
  readonly peers: readonly InstalledPeer[];
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
interface Ratio {
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
  /** What the latency is of: whole answers, or the first byte of streams. */
  readonly part: Part;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** null below 1,000 calls. */
  readonly p999: number | null;
  /** Latency added to a whole stream, per chunk. */
  readonly per_chunk: number | null;
}

export type Part = "answer" | "first byte";

/** Calls/s of the gateway compared to those of each other target under the same load; its cached answers to plain ones of the bare proxy. */
export function ratiosOf(runs: readonly Run[]): readonly Ratio[] {
  const closed = runs.filter(({ mode }) => mode === "closed");
  return closed
    .filter(({ target }) => target === "gateway")
    .flatMap((ours) =>
      closed
        .filter(
          (other) =>
            other.target !== "gateway" &&
            isComparable(ours, other) &&
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

function isComparable(ours: Run, other: Run): boolean {
  return ours.load === "cached"
    ? other.load === "plain" && other.target === "bare"
    : other.load === ours.load;
}

export function addedBy(runs: readonly Run[]): readonly Added[] {
  const open = runs.filter(
    ({ mode, kept_rate }) => mode === "open" && kept_rate,
  );
  return open.flatMap((run) => {
    const alone = open.find(
      ({ target, load, rate }) =>
        target === "mock" && load === run.load && rate === run.rate,
    );
    if (run.target === "mock" || alone === undefined) {
      return [];
    }
    return [
      addedTo(alone, run, "answer"),
      ...(run.load === "stream" ? [addedTo(alone, run, "first byte")] : []),
    ].filter((added) => added !== null);
  });
}

function addedTo(alone: Run, run: Run, part: Part): Added | null {
  const [before, after] = [alone, run].map((each) =>
    part === "answer" ? each.latency_ms : each.first_byte_ms,
  );
  if (!before || !after) {
    return null;
  }
  const p50 = after.p50 - before.p50;
  return {
    target: run.target,
    load: run.load,
    part,
    rate: run.rate ?? 0,
    p50: rounded(p50, 3),
    p99: rounded(after.p99 - before.p99, 3),
    p999:
      after.p999 === null || before.p999 === null
        ? null
        : rounded(after.p999 - before.p999, 3),
    per_chunk:
      run.load === "stream" && part === "answer"
        ? rounded(p50 / CHUNKS_PER_STREAM, 4)
        : null,
  };
}
