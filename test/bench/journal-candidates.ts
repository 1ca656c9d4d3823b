import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openJournal } from "../../gateway/journal/journal.ts";

/** Lines of a call, as long as those of the gateway. */
const INTENT = { payer: "k".repeat(64), detail: "d".repeat(600) };
const OUTCOME = { cost: 0.000_123, detail: "d".repeat(350) };

export type Sync = "always" | "interval";

/** Both calls resolve when the line is as durable as `Sync` requires: flushed to disk, or preserved if the process ends. */
interface Candidate {
  intent(id: string): Promise<void> | undefined;
  outcome(id: string): Promise<void> | undefined;
  close(): Promise<void>;
}

async function openOwn(dir: string, sync: Sync): Promise<Candidate> {
  const log = { info() {}, warn() {}, error: console.error };
  const journal = await openJournal<
    { readonly id: string; readonly startedAt: number },
    { readonly id: string }
  >({ dir, sync, now: Date.now, log });
  return {
    intent: (id) => journal.intent({ id, startedAt: Date.now(), ...INTENT }),
    outcome: (id) => journal.outcome({ id, ...OUTCOME }),
    close: () => journal.close(),
  };
}

/** SQLite with a WAL. `always`: one flushed commit for all lines of a turn of the event loop; `interval`: one commit per line. */
function openSqlite(dir: string, sync: Sync): Candidate {
  const database = new DatabaseSync(join(dir, "journal.sqlite"));
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${sync === "always" ? "FULL" : "NORMAL"};
     CREATE TABLE lines (line INTEGER PRIMARY KEY, id TEXT NOT NULL, record TEXT NOT NULL)`,
  );
  const insert = database.prepare(
    "INSERT INTO lines (id, record) VALUES (?, ?)",
  );
  let committed: Promise<void> | null = null;
  const write = (id: string, record: object) => {
    const grouped = sync === "always";
    if (grouped && committed === null) {
      database.exec("BEGIN");
      committed = new Promise((resolve) => {
        setImmediate(() => {
          committed = null;
          database.exec("COMMIT");
          resolve();
        });
      });
    }
    insert.run(id, JSON.stringify(record));
    return committed ?? undefined;
  };
  return {
    intent: (id) => write(id, { id, startedAt: Date.now(), ...INTENT }),
    outcome: (id) => write(id, { id, ...OUTCOME }),
    close: async () => database.close(),
  };
}

export const OPENERS = { "own journal": openOwn, "node:sqlite": openSqlite };

export type CandidateName = keyof typeof OPENERS;
