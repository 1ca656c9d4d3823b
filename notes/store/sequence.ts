import { Refusal } from "../refusal.ts";
import type { Store } from "./store.ts";

/** CouchDB's replicator sends the sequence as JSON text. */
const TOKEN = /^"?(\d{1,15})-h1([0-9a-f]{32})"?$/;

/** A token of a CouchDB, of whose databases a client can have kept some: a list in Erlang's external term format, compressed or not. */
const COUCHDB_TOKEN = /^"?\d{1,15}-g(?:1AAA|2wAA)[\w-]+"?$/;

/** A sequence token: its number, and an identifier of the database that changes when it is recreated. */
export function sequenceToken(store: Store, seq: number): string {
  return `${seq}-h1${store.instanceId}`;
}

/** Whether a value is a sequence token of this database. */
export function isOwnToken(store: Store, value: unknown): boolean {
  return (
    typeof value === "string" && TOKEN.exec(value)?.[2] === store.instanceId
  );
}

/** The committed update sequence. */
export function committedSequence(store: Store): number {
  return (store.read.totals.get() as { update_seq: number }).update_seq;
}

/** Reads `since`: 0, `now`, or a token; a token of another database starts at 0; anything else is rejected. */
export function readSince(
  store: Store,
  since: string | undefined,
  committed: number,
): number {
  if (since === undefined || since === "0") {
    return 0;
  }
  if (since === "now") {
    return committed;
  }
  if (COUCHDB_TOKEN.test(since)) {
    return 0;
  }
  const match = TOKEN.exec(since);
  if (match === null) {
    throw new Refusal(
      "bad_request",
      "Malformed sequence supplied in 'since' parameter.",
    );
  }
  const seq = Number(match[1]);
  // A number above the last one dates from before an older copy of the file was restored.
  return match[2] === store.instanceId && seq <= committed ? seq : 0;
}
