import type { Store } from "./store.ts";

/** Types of LiveSync's documents that have a history: notes and other files, and the chunks of their content. */
const NOTE_TYPES: ReadonlySet<string> = new Set(["plain", "newnote", "notes"]);
const CHUNK = "leaf";

/** Records that a version has become current. Call within a transaction. */
export function recordStart(
  store: Store,
  document: number,
  rev: string,
  version: {
    readonly deleted: boolean;
    readonly type: string | undefined;
    readonly size: number;
  },
): void {
  const { deleted, type, size } = version;
  if (deleted || type === undefined || !NOTE_TYPES.has(type)) {
    return;
  }
  // A version pruned from its tree can return from a device that still has it.
  store.write
    .other(
      "INSERT INTO history (document, rev, type, size, since) VALUES (?, ?, ?, ?, ?) ON CONFLICT (document, rev) DO UPDATE SET until = NULL",
    )
    .run(document, rev, type, size, store.transactionTime);
}

/** Records that a version is no longer current. Call within a transaction. */
export function recordEnd(
  store: Store,
  document: number,
  rev: string,
  version: {
    readonly deleted: number;
    readonly type: string | null;
    readonly size: number;
  },
): void {
  const { deleted, type, size } = version;
  if (deleted === 1 || type === null) {
    return;
  }
  if (NOTE_TYPES.has(type)) {
    // A clock set back must not end a version before its start. Versions from before the history have no row.
    store.write
      .other(
        "INSERT INTO history (document, rev, type, size, since, until) VALUES (?1, ?2, ?3, ?4, 0, ?5) ON CONFLICT (document, rev) DO UPDATE SET until = MAX(since, excluded.until)",
      )
      .run(document, rev, type, size, store.transactionTime);
  } else if (type === CHUNK) {
    store.write
      .other(
        "INSERT INTO history (document, rev, type, size, since, until) VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (document, rev) DO UPDATE SET until = excluded.until",
      )
      .run(document, rev, type, size, store.transactionTime);
  }
}

/** Copies a body that is about to leave `revisions` into the history; no effect for a version that is not kept. Call within a transaction. */
export function keepBody(store: Store, document: number, rev: string): void {
  store.write
    .other(
      "UPDATE history SET (body, sum) = (SELECT body, sum FROM revisions WHERE revisions.document = ?1 AND revisions.rev = ?2) WHERE document = ?1 AND rev = ?2 AND until IS NOT NULL AND body IS NULL",
    )
    .run(document, rev);
}
