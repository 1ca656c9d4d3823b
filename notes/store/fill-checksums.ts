import { setTimeout as sleep } from "node:timers/promises";
import { sumOf } from "./checksum.ts";
import { atomically, exclusively, type Store } from "./store.ts";

/** Rows read, and written, per step; writes and feeds run between the steps. */
const ROWS_PER_STEP = 500;
const WRITES_PER_STEP = 20;
const PAUSE_MS = 2;
/** Each row is written again with its body, so a large vault of an earlier release takes several runs. */
const BYTES_PER_RUN = 64_000_000;

/** Stores in which every body has a checksum: they write no other. */
const complete = new WeakSet<Store>();

/** Gives bodies that an earlier release wrote a checksum: what the file contains now is taken as true. */
export async function fillChecksums(store: Store): Promise<void> {
  let left = store.readOnly || complete.has(store) ? 0 : BYTES_PER_RUN;
  for (const table of ["revisions", "history"] as const) {
    let last: number | undefined = 0;
    while (last !== undefined && left > 0) {
      const page = rowsAfter(store, table, last);
      const wanted = page.filter(({ without }) => without === 1);
      for (let at = 0; at < wanted.length; at += WRITES_PER_STEP) {
        left -= await fill(
          store,
          table,
          wanted.slice(at, at + WRITES_PER_STEP),
        );
        await sleep(PAUSE_MS);
      }
      last = page.at(-1)?.row;
      await sleep(PAUSE_MS);
      if (store.readOnly || store.closing) {
        return;
      }
    }
  }
  if (left > 0) {
    complete.add(store);
  }
}

interface Row {
  readonly row: number;
  /** 1: it has a body without a checksum. */
  readonly without: number;
}

/** The type of a value is in the head of its row, which is read faster than the value behind the body. */
function rowsAfter(
  store: Store,
  table: "revisions" | "history",
  last: number,
): readonly Row[] {
  return store.read
    .other(
      `SELECT rowid AS row, typeof(sum) = 'null' AND typeof(body) <> 'null' AS without FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${ROWS_PER_STEP}`,
    )
    .all(last) as unknown as readonly Row[];
}

/** Not a change of the vault, for which others would read it. Returns the bytes written. */
async function fill(
  store: Store,
  table: "revisions" | "history",
  rows: readonly Row[],
): Promise<number> {
  return await exclusively(store, async () =>
    store.readOnly || store.closing
      ? 0
      : await atomically(store, () => {
          let bytes = 0;
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
          return bytes;
        }),
  );
}
