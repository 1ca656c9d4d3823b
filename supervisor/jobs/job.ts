/** One kind of scheduled work. The runner never runs two of a name at once, and catches up a missed run once. */
export interface Job {
  /** As in `jobs:` of the configuration and `hearth jobs run <name>`; lower-case letters, digits, `-`. */
  readonly name: string;
  /** What it does, in one sentence. */
  readonly description: string;
  readonly schedule: JobSchedule;
  /** What a person may say with it on the console's page; `context.options` holds what was said. */
  readonly options?: readonly JobOption[];
  /**
   * Does the work once. Throws a Failure whose sentence says what to do; the runner tries again as often as `retries` says.
   * Leaves nothing half done when `context.signal` aborts.
   */
  readonly run: (context: JobContext) => Promise<JobOutcome>;
}

/** One of `context.options` as a person is asked for it; the job itself checks what comes. */
export type JobOption = {
  readonly name: string;
  readonly label: string;
  readonly note?: string;
} & (
  | { readonly kind: "tick" | "text" }
  | {
      readonly kind: "choice";
      /** What there is to choose from now. */
      readonly values: () => readonly string[];
      /** What happens when nothing is chosen: "the newest". */
      readonly otherwise: string;
    }
);

export interface JobSchedule {
  /** Five fields, in the operator's time zone; null runs only when asked. */
  readonly cron: string | null;
  readonly timeoutMs: number;
  /** Further tries after a failed one. */
  readonly retries: number;
}

export interface JobContext {
  /** Aborts at the timeout, when an operator stops the job, and when the supervisor ends. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Says how far it is: a sentence, and the part done from 0 to 1 where it is known. */
  readonly progress: (text: string, done?: number) => void;
  /** Asked for by a person rather than due: gates that save work by night may be passed. */
  readonly asked: boolean;
  /** What the person said with it (`hearth compact --force`), as checked by the job itself. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface JobOutcome {
  /** skipped: there was nothing to do, or a gate held; the summary says which. */
  readonly status: "done" | "skipped";
  /** One sentence for the history and the page. */
  readonly summary: string;
  /** The figures behind it, JSON. */
  readonly details?: Readonly<Record<string, unknown>>;
}
