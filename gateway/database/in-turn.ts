import type pg from "pg";
import { createMutex } from "../../core/mutex.ts";

/** Runs a statement once those before it have ended; throws what Postgres or the connection gives as its error. */
export type InTurn = (
  text: string,
  values?: readonly unknown[],
) => Promise<pg.QueryResult>;

/** Statements of several callers on one connection, one at a time. */
export function inTurn(client: pg.Client): InTurn {
  const oneAtATime = createMutex();
  return (text, values = []) =>
    oneAtATime(() => client.query(text, [...values]));
}
