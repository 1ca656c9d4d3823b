import { Refusal } from "../refusal.ts";
import type { ServerContext } from "./context.ts";

/** A database's info; undefined when the database does not exist. `signal` aborts the call. */
export async function databaseInfo(
  context: ServerContext,
  name: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  try {
    const database = await context.databases.open(name);
    const answer = await database.call(
      { operation: "info", query: {}, maxDocumentSize: 0 },
      signal,
    );
    return JSON.parse(answer.body ?? "null") as Record<string, unknown>;
  } catch (failure) {
    if (failure instanceof Refusal && failure.code === "not_found") {
      return undefined;
    }
    throw failure;
  }
}
