import { setTimeout as sleep } from "node:timers/promises";
import { keepBody } from "./record-history.ts";
import { thinHistory } from "./thin-history.ts";
import { fileBytes } from "./administration.ts";
import { json, type Answer } from "./answer.ts";
import { refusalOf } from "../refusal.ts";
import { releaseReserve } from "./disk-reserve.ts";
import {
  exclusively,
  inReserve,
  publicState,
  reportFailure,
  reserveOf,
  type Store,
} from "./store.ts";

/** Superseded revisions dropped, and pages released, per step; writes and feeds run between the steps. */
const REVISIONS_PER_STEP = 200;
const PAGES_PER_STEP = 256;
const PAUSE_MS = 2;

/** Starts a compaction and answers at once. Leaves, deleted ones too, are never touched; bodies that the history keeps move there. */
export function compact(store: Store): Answer {
  if (!store.compacting) {
    store.compacting = true;
    notifyState(store);
    void run(store).finally(() => {
      store.compacting = false;
      if (!store.closing) {
        notifyState(store);
      }
    });
  }
  return json(202, { ok: true });
}

async function run(store: Store): Promise<void> {
  const started = performance.now();
  const before = fileBytes(store);
  try {
    await shrink(store).catch(async (failure: unknown) => {
      if (refusalOf(failure).code !== "insufficient_storage") {
        throw failure;
      }
      releaseReserve(reserveOf(store));
      await shrink(store);
    });
    if (store.closing) {
      return;
    }
    store.notify({
      kind: "compacted",
      before,
      after: fileBytes(store),
      milliseconds: Math.round(performance.now() - started),
    });
  } catch (failure) {
    reportFailure(store, "compaction failed", failure);
  }
}

async function shrink(store: Store): Promise<void> {
  await thinHistory(store);
  while (!store.closing && (await dropSuperseded(store))) {
    await sleep(PAUSE_MS);
  }
  while (!store.closing && (await giveBackPages(store))) {
    await sleep(PAUSE_MS);
  }
  if (store.closing) {
    return;
  }
  await exclusively(store, async () => {
    store.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  });
}

async function dropSuperseded(store: Store): Promise<boolean> {
  return await inReserve(store, () => {
    const rows = store.write
      .other(
        `SELECT document, rev, size FROM revisions WHERE leaf = 0 LIMIT ${REVISIONS_PER_STEP}`,
      )
      .all() as { document: number; rev: string; size: number }[];
    for (const { document, rev, size } of rows) {
      keepBody(store, document, rev);
      store.write.dropRevision.get(document, rev);
      store.totals.staleBytes -= size;
    }
    return rows.length === REVISIONS_PER_STEP;
  });
}

async function giveBackPages(store: Store): Promise<boolean> {
  return await exclusively(store, async () => {
    store.writer.exec(`PRAGMA incremental_vacuum(${PAGES_PER_STEP})`);
    const row = store.writer.prepare("PRAGMA freelist_count").get();
    return Number(row?.freelist_count) > 0;
  });
}

function notifyState(store: Store): void {
  store.notify({ kind: "state", state: publicState(store) });
}
