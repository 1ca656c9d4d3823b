import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Couch } from "./couch.ts";
import { asExpected } from "./database.ts";
import type { QuietVaults } from "./quiet-vaults.ts";

const updates = z.looseObject({
  results: z.array(z.looseObject({ db_name: z.string(), type: z.string() })),
  last_seq: z.union([z.string(), z.number()]).transform(String),
});

const LONGPOLL_MS = 55_000;
const ANSWER_WITHIN_MS = 75_000;
/** CouchDB has the feed only where its database `_global_changes` was created. */
const RETRY_AFTER_MS = 30_000;

/** What the embedded store calls itself. */
const EMBEDDED_VENDOR = "Hearth notes";
const welcome = z.looseObject({ vendor: z.looseObject({ name: z.string() }) });

export interface DatabaseEvents {
  readonly created: (database: string) => Promise<void>;
  /** Learns of every change of the embedded store; CouchDB's feed leaves out local documents. */
  readonly quiet: Pick<QuietVaults, "changed" | "connected" | "lost">;
}

/** Reports which databases are created and changed, until `stop` is aborted. Never rejects; a store that does not answer is asked again. */
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
          timeoutMs: ANSWER_WITHIN_MS,
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
      // The checks report a store that does not answer; the next look at all vaults finds what was missed.
      await wait(RETRY_AFTER_MS, undefined, { signal: stop }).catch(() => {});
    }
  }
}

async function isEmbedded(couch: Couch): Promise<boolean> {
  const answer = welcome.safeParse(await couch.ask("GET", "/"));
  return answer.success && answer.data.vendor.name === EMBEDDED_VENDOR;
}
