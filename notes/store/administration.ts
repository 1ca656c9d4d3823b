import { statSync } from "node:fs";
import { isRecord } from "../../core/json.ts";
import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import type { SecurityObject, StoreRequest } from "./protocol.ts";
import { bodyJson } from "./query.ts";
import { sequenceToken } from "./sequence.ts";
import { inTransaction, type Store } from "./store.ts";

/** Counts of the database and its sizes, in bytes. */
export function info(store: Store): Answer {
  const totals = store.read.totals.get() as Record<string, number>;
  return json(200, {
    instance_start_time: store.instanceStartTime,
    db_name: store.name,
    purge_seq: sequenceToken(store, 0),
    update_seq: sequenceToken(store, totals.update_seq!),
    sizes: {
      file: fileBytes(store),
      external: totals.live_bytes,
      active: activeBytes(store, totals.stale_bytes!),
    },
    props: {},
    doc_del_count: totals.deleted,
    doc_count: totals.documents,
    disk_format_version: 8,
    compact_running: store.compacting,
    cluster: { q: 1, n: 1, w: 1, r: 1 },
  });
}

/** The numbers of a database on the administration page. */
export function overview(store: Store): Answer {
  const totals = store.read.totals.get() as Record<string, number>;
  const conflicted = store.read
    .other(
      "SELECT COUNT(*) AS n FROM documents WHERE conflicts > 0 AND deleted = 0",
    )
    .get() as { n: number };
  return json(200, {
    name: store.name,
    documents: totals.documents,
    deleted: totals.deleted,
    conflicted: conflicted.n,
    fileBytes: fileBytes(store),
    activeBytes: activeBytes(store, totals.stale_bytes!),
    compacting: store.compacting,
  });
}

/** Bytes on disk, the write-ahead log included. */
export function fileBytes(store: Store): number {
  const log = statSync(`${store.file}-wal`, { throwIfNoEntry: false });
  return statSync(store.file).size + (log?.size ?? 0);
}

/** Bytes that a compaction would leave: the pages in use without the bodies of superseded revisions. */
function activeBytes(store: Store, staleBytes: number): number {
  const pragma = (name: string): number =>
    Number(
      Object.values(store.read.other(`PRAGMA ${name}`).get() ?? { none: 0 })[0],
    );
  const used =
    (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  return Math.max(0, used - staleBytes);
}

/** Replaces the security object. A change counts as an update, as in CouchDB. */
export async function putSecurity(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const security = bodyJson(request.body);
  checkSecurity(security);
  await inTransaction(store, () => {
    store.totals.updateSeq += 1;
    store.write.putProperty.run("security", JSON.stringify(security));
    store.pendingSettings = { ...store.pendingSettings, security };
  });
  return json(200, { ok: true });
}

function checkSecurity(value: unknown): asserts value is SecurityObject {
  const isNames = (each: unknown): boolean =>
    each === undefined ||
    (Array.isArray(each) && each.every((name) => typeof name === "string"));
  const isGroup = (each: unknown): boolean =>
    each === undefined ||
    (isRecord(each) && isNames(each.names) && isNames(each.roles));
  if (!isRecord(value) || !isGroup(value.admins) || !isGroup(value.members)) {
    throw new Refusal(
      "bad_request",
      "The security object must be {admins: {names, roles}, members: {names, roles}} with lists of strings.",
    );
  }
}

/** How many generations of a document's history are kept. */
export function revsLimit(store: Store): Answer {
  return json(200, store.settings.revsLimit);
}

export async function putRevsLimit(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const limit = bodyJson(request.body);
  if (!Number.isInteger(limit) || (limit as number) < 1) {
    throw new Refusal(
      "bad_request",
      "The revision limit must be an integer of 1 or more.",
    );
  }
  await inTransaction(store, () => {
    store.write.putProperty.run("revs_limit", String(limit));
    store.pendingSettings = {
      ...store.pendingSettings,
      revsLimit: limit as number,
    };
  });
  return json(200, { ok: true });
}
