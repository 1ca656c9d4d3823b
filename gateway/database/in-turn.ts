import type pg from "pg";

/** Runs a statement once those before it have ended; throws what Postgres or the connection gives as its error. */
export type InTurn = (
  text: string,
  values?: readonly unknown[],
) => Promise<pg.QueryResult>;

/** Statements of several callers on one connection, one at a time. */
export function inTurn(client: pg.Client): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (text, values = []) => {
    const result = last.then(() => client.query(text, [...values]));
    last = result.catch(() => undefined);
    return result;
  };
}
