import type { LaunchPlan } from "./launch.ts";

/** How a program of the stack is started, probed and stopped. Times in milliseconds. */
export interface ServiceSpec {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** Services that must be running before it starts; it stops before them. */
  readonly needs: readonly string[];
  /** Services that it uses without needing them to start; it stops before them. */
  readonly uses: readonly string[];
  /** Before each start: creates files, checks the port. Throws a Failure with the next step. */
  readonly prepare: () => Promise<void>;
  readonly plan: () => LaunchPlan;
  /** Before a restart. Throws a Failure if a start would fail; the running process is kept. */
  readonly validate?: () => Promise<void>;
  /** Probes once; true if healthy. Throws a Failure if it can never become healthy. */
  readonly probe: (signal: AbortSignal) => Promise<boolean>;
  /** After it is healthy and before other services start. */
  readonly afterUp: () => Promise<void>;
  readonly startWithinMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly stopWithinMs: number;
  /** The file with which a running process starts its successor (see hand-over.ts); absent: it cannot hand over. */
  readonly successorFile?: string;
  /** What its child processes use is its own too. */
  readonly hasWorkers?: boolean;
  /** Ends it quickly without harming its data. */
  readonly haltSignal: NodeJS.Signals;
  /** Lines of its log that explain a failed start. */
  readonly explain: (log: readonly string[]) => readonly string[];
}
