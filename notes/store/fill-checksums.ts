import { setTimeout as sleep } from "node:timers/promises";
import { sumOf } from "./checksum.ts";
import { exclusively, type Store } from "./store.ts";

/** Rows per step; writes and feeds run between the steps. */
const ROWS_PER_STEP = 20;
const PAUSE_MS = 2;
/** Each row is written again with its body, so a large vault of an earlier release takes several runs. */
const BYTES_PER_RUN = 64_000_000;

/** Gives bodies that an earlier release wrote a checksum: what the file contains now is taken as true. */
export async function fillChecksums(store: Store): Promise<void> {
  let left = BYTES_PER_RUN;
  for (const table of ["revisions", "history"] as const) {
    let last = 0;
    while (left > 0 && !store.readOnly && !store.closing) {
      // The type is in the head of a row, its value behind the body.
      const rows = store.read
        .other(
          `SELECT rowid AS row FROM ${table} WHERE rowid > ? AND typeof(sum) = 'null' AND body IS NOT NULL ORDER BY rowid LIMIT ${ROWS_PER_STEP}`,
        )
        .all(last) as { readonly row: number }[];
      left -= await fill(store, table, rows);
      if (rows.length < ROWS_PER_STEP) {
        break;
      }
      last = rows.at(-1)!.row;
      await sleep(PAUSE_MS);
    }
  }
}

/** Not a change of the vault, for which others would read it. Returns the bytes written. */
async function fill(
  store: Store,
  table: "revisions" | "history",
  rows: readonly { readonly row: number }[],
): Promise<number> {
  return await exclusively(store, async () => {
    let bytes = 0;
    if (store.readOnly || store.closing) {
      return bytes;
    }
    store.writer.exec("BEGIN IMMEDIATE");
    try {
      for (const { row } of rows) {
        const found = store.write
          .other(`SELECT body FROM ${table} WHERE rowid = ?`)
          .get(row) as { readonly body: Uint8Array } | undefined;
        if (found !== undefined) {
          store.write
            .other(`UPDATE ${table} SET sum = ? WHERE rowid = ?`)
            .run(sumOf(found.body), row);
          bytes += found.body.length;
        }
      }
      store.writer.exec("COMMIT");
    } catch (failure) {
      if (store.writer.isTransaction) {
        store.writer.exec("ROLLBACK");
      }
      throw failure;
    }
    return bytes;
  });
}
