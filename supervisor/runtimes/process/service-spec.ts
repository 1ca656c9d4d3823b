import type { LaunchPlan } from "./launch.ts";

/** One program of the stack: how it starts, how one sees that it is well, how it stops. Times in milliseconds. */
export interface ServiceSpec {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** Services that must run before it starts; it stops before them. */
  readonly needs: readonly string[];
  /** Services that it merely uses: it stops before them. */
  readonly uses: readonly string[];
  /** Before each start: makes files, looks whether the port is free. Throws a Failure that says what to do. */
  readonly prepare: () => Promise<void>;
  readonly plan: () => LaunchPlan;
  /** Before a process is stopped to be started again. Throws a Failure when a start would fail, and what runs is kept. */
  readonly validate?: () => Promise<void>;
  /** One look; true when it is well. Throws a Failure when it never will be. */
  readonly probe: (signal: AbortSignal) => Promise<boolean>;
  /** After it is well and before anyone may need it. */
  readonly afterUp: () => Promise<void>;
  readonly startWithinMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly stopWithinMs: number;
  /** Where a running process of it reads how to start its successor (see hand-over.ts); absent: it cannot hand over. */
  readonly successorFile?: string;
  /** How to end it in a hurry without harm to its data. */
  readonly haltSignal: NodeJS.Signals;
  /** Lines of its log that explain a failed start. */
  readonly explain: (log: readonly string[]) => readonly string[];
}
