import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { InTurn } from "./in-turn.ts";
import { DatabaseUnavailable, within } from "./pool.ts";

/** Checks regularly whether Postgres still answers on a connection. */
interface Probe {
  /** Why there will be no further answer; pending while there are some. */
  readonly failed: Promise<Error>;
  stop(): void;
}

/** Together they are the time in which silence is noticed: below the deadline of a call's statement. */
const EVERY_MS = 500;
const WITHIN_MS = 1_400;

export function startProbe(ask: InTurn): Probe {
  const stopped = new AbortController();

  async function askOn(): Promise<never> {
    for (;;) {
      await within(WITHIN_MS, ask("SELECT"));
      await sleep(EVERY_MS, undefined, { signal: stopped.signal });
    }
  }

  return {
    failed: askOn().catch((error: Error) => error),
    stop: () => stopped.abort(),
  };
}

/** Whether an error is that of an answer that never came, as against one that Postgres gave. */
export function isOverdue(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) {
    return isOverdue(error.cause);
  }
  return (
    error instanceof Error &&
    !(error instanceof pg.DatabaseError) &&
    /timeout|timed ?out/i.test(error.message)
  );
}
