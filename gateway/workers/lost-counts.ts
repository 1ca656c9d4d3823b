import type { CollectedMetric } from "../metrics/exposition.ts";

type Metrics = readonly CollectedMetric[];

/**
 * Keeps what workers that have ended had counted: a sum over all workers must not go backwards, or Prometheus would count
 * everything again.
 */
export class LostCounts {
  /** The last answer of each worker's current process, by its place. */
  readonly #last = new Map<number, Metrics>();
  #lost: Metrics = [];
  /** One after the other. */
  #adding: Promise<void> = Promise.resolve();

  /** A worker has answered. */
  answered(at: number, metrics: Metrics): void {
    this.#last.set(at, metrics);
  }

  /** What each of `workers` counts, as it last said, and after these what was lost. */
  async complete(workers: number): Promise<readonly (Metrics | null)[]> {
    await this.#adding;
    const current = Array.from(
      { length: workers },
      (_, at) => this.#last.get(at) ?? null,
    );
    return [...current, this.#lost];
  }

  /** The process of a worker has ended. */
  ended(at: number): void {
    const last = this.#last.get(at);
    this.#last.delete(at);
    if (last !== undefined) {
      const counts = last.filter(isCount);
      this.#adding = this.#adding.then(() => this.#add(counts));
    }
  }

  async #add(counts: Metrics): Promise<void> {
    const { AggregatorRegistry } = await import("prom-client");
    const sums = AggregatorRegistry.aggregate([[...this.#lost], [...counts]]);
    this.#lost = await sums.getMetricsAsJSON();
  }
}

/** The library's own types name kinds by numbers. */
function isCount({ type }: CollectedMetric): boolean {
  return ["counter", "histogram"].includes(String(type));
}
