/** Scheduled work. The runner never runs two of a name at once, and catches up once on missed runs. */
export interface Job {
  /** Used in `jobs:` of the configuration and `hearth jobs run <name>`; lower-case letters, digits, `-`. */
  readonly name: string;
  /** What it does, in one sentence. */
  readonly description: string;
  readonly schedule: JobSchedule;
  /** Brings data back after a loss, rather than routine work: listed separately. */
  readonly purpose?: "restore";
  /** Options of a run on demand in the console; passed as `context.options`. */
  readonly options?: readonly JobOption[];
  /** Throws a Failure for a request that no run can fulfil: none is started then, so none fails and raises an alarm. */
  readonly check?: (options: Readonly<Record<string, unknown>>) => void;
  /**
   * Does the work once. Throws a Failure with the next step; the runner retries up to `retries` times. Leaves nothing
   * incomplete when `context.signal` aborts.
   */
  readonly run: (context: JobContext) => Promise<JobOutcome>;
  /** Removes what a run left behind whose supervisor was killed; the next run waits for it, and continues if it fails. */
  readonly cleanUp?: (signal: AbortSignal) => Promise<void>;
}

/** A form field for one of `context.options`; the job validates the value. */
export type JobOption = {
  readonly name: string;
  readonly label: string;
  readonly note?: string;
} & (
  | { readonly kind: "tick" | "text" }
  | {
      readonly kind: "choice";
      /** The current choices. */
      readonly values: () => readonly string[];
      /** The default: "the newest". */
      readonly otherwise: string;
    }
);

interface JobSchedule {
  /** Five fields, in the operator's time zone; null: only on demand. */
  readonly cron: string | null;
  readonly timeoutMs: number;
  /** Attempts after a failed one. */
  readonly retries: number;
}

export interface JobContext {
  /** Aborts at the timeout, when an operator stops the job, and when the supervisor ends. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Reports progress: a sentence, and the completed part from 0 to 1, if known. */
  readonly progress: (text: string, done?: number) => void;
  /** Started on demand: conditions that save work at night may be ignored. */
  readonly onDemand: boolean;
  /** Options of a run on demand (`hearth compact --force`), validated by the job. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface JobOutcome {
  /** skipped: nothing to do, or a condition not met; see the summary. */
  readonly status: "done" | "skipped";
  /** One sentence for the history and the page. */
  readonly summary: string;
  /** The figures behind it, JSON. */
  readonly details?: Readonly<Record<string, unknown>>;
}
