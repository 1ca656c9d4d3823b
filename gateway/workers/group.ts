/** What workers are asked about themselves. */
export type Question =
  | "readiness"
  /** Reads its configuration again. */
  | "reload"
  | "metrics"
  | "deliveries"
  | "loads"
  | "cache";

/** The workers that serve one port together (`general_settings.workers`), as one of them sees them. */
export interface WorkerGroup {
  /**
   * Asks every worker, this one included, through the primary process. null: a worker that is being restarted, or did not
   * answer in time. `metrics` has one more answer: what workers that have ended had counted.
   */
  ask(question: Question): Promise<readonly unknown[]>;
}
