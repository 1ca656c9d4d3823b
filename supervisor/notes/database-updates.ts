import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Couch } from "./couch.ts";
import { asExpected } from "./database.ts";

const updates = z.looseObject({
  results: z.array(z.looseObject({ db_name: z.string(), type: z.string() })),
  last_seq: z.union([z.string(), z.number()]).transform(String),
});

const longpollMs = 55_000;
const answerWithinMs = 75_000;
/** CouchDB has the feed only where its database `_global_changes` was created. */
const retryAfterMs = 30_000;

/** Calls `onCreated` as soon as a database was created, until `stop` is aborted. Never rejects; a store that does not answer is asked again. */
export async function followDatabases(
  couch: Couch,
  onCreated: (database: string) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  let since = "0";
  while (!stop.aborted) {
    try {
      const query = new URLSearchParams({
        ...{ feed: "longpoll", since, timeout: String(longpollMs) },
      });
      const page = asExpected(
        updates,
        await couch.ask("GET", `/_db_updates?${query.toString()}`, {
          signal: stop,
          timeoutMs: answerWithinMs,
        }),
      );
      since = page.last_seq;
      for (const { db_name: database, type } of page.results)
        if (type === "created") await onCreated(database);
    } catch {
      // The checks report a store that does not answer; the next look at all vaults finds what was missed.
      await wait(retryAfterMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}
