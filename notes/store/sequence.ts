import { Refusal } from "../refusal.ts";
import type { Store } from "./store.ts";

/** A sequence as clients see it: its number and which database, in which of its lives, it belongs to. */
export function sequenceToken(store: Store, seq: number): string {
  return `${seq}-h1${store.instanceId}`;
}

/** The update sequence of what is committed. */
export function committedSequence(store: Store): number {
  return (store.read.totals.get() as { update_seq: number }).update_seq;
}

/** Reads `since`: 0, `now`, or a token; a token of another database starts at 0; anything else is refused. */
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
  const match = /^(\d{1,15})-h1([0-9a-f]{32})$/.exec(since);
  if (match === null) {
    throw new Refusal(
      "bad_request",
      "Malformed sequence supplied in 'since' parameter.",
    );
  }
  const seq = Number(match[1]);
  // A number beyond our last one comes from before an older copy of the file was put back.
  return match[2] === store.instanceId && seq <= committed ? seq : 0;
}
