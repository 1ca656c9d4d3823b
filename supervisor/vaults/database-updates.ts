import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Couch } from "./couch.ts";
import { asExpected } from "./couch-answers.ts";
import { isEmbedded } from "./database.ts";
import type { QuietVaults } from "./quiet-vaults.ts";

const updates = z.looseObject({
  results: z.array(z.looseObject({ db_name: z.string(), type: z.string() })),
  last_seq: z.union([z.string(), z.number()]).transform(String),
});

const LONGPOLL_MS = 55_000;
const LONGPOLL_TIMEOUT_MS = 75_000;
/** CouchDB provides the feed only if its database `_global_changes` exists. */
const RETRY_AFTER_MS = 30_000;

interface DatabaseEvents {
  readonly created: (database: string) => Promise<void>;
  /** Notified of every change of the embedded store; CouchDB's feed omits local documents. */
  readonly quiet: Pick<QuietVaults, "changed" | "connected" | "lost">;
}

/** Reports created and changed databases until `stop` is aborted. Never rejects; requests to a store that does not respond are repeated. */
export async function followDatabases(
  couch: Couch,
  { created, quiet }: DatabaseEvents,
  stop: AbortSignal,
): Promise<void> {
  let since = "0";
  let isConnected = false;
  while (!stop.aborted) {
    try {
      const query = new URLSearchParams({
        feed: "longpoll",
        since,
        timeout: String(LONGPOLL_MS),
      });
      const page = asExpected(
        updates,
        await couch.ask("GET", `/_db_updates?${query.toString()}`, {
          signal: stop,
          timeoutMs: LONGPOLL_TIMEOUT_MS,
        }),
      );
      since = page.last_seq;
      for (const { db_name: database } of page.results) {
        quiet.changed(database);
      }
      if (!isConnected && (await isEmbedded(couch))) {
        quiet.connected();
      }
      isConnected = true;
      for (const { db_name: database, type } of page.results) {
        if (type === "created") {
          await created(database);
        }
      }
    } catch {
      isConnected = false;
      quiet.lost();
      // The checks report a store that does not respond; the next check of all vaults finds missed changes.
      await sleep(RETRY_AFTER_MS, undefined, { signal: stop }).catch(() => {});
    }
  }
}
