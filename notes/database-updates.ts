import { randomBytes } from "node:crypto";
import type { FeedSource } from "./feed-wait.ts";

/** Feeds learn of writes at most this often; a device that types writes several times a second. */
const UPDATE_DELAY_MS = 1000;
/** Names of deleted databases must not pile up. */
const MAX_ROWS = 10_000;

export type UpdateType = "created" | "updated" | "deleted";

export interface DatabaseUpdate {
  readonly db_name: string;
  readonly type: UpdateType;
  readonly seq: string;
}

/** What happened to the databases since this process started: of each the last event of each type, as in CouchDB's `_db_updates`. */
export interface DatabaseUpdates extends FeedSource {
  readonly add: (name: string, type: UpdateType) => void;
  /** Events after a token; all where the token is of an earlier process. */
  readonly after: (seq: number) => readonly DatabaseUpdate[];
  readonly token: (seq: number) => string;
  readonly seqOf: (token: string | undefined) => number;
  readonly close: () => void;
}

/** `names` are the databases that there are; what happened to them before is not known. */
export function openDatabaseUpdates(names: readonly string[]): DatabaseUpdates {
  const process = randomBytes(8).toString("hex");
  const rows = new Map<
    string,
    { name: string; type: UpdateType; at: number }
  >();
  const listeners = new Set<() => void>();
  const written = new Set<string>();
  let seq = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const notify = (): void => {
    for (const listener of [...listeners]) {
      listener();
    }
  };
  const record = (name: string, type: UpdateType): void => {
    const key = `${type}:${name}`;
    seq += 1;
    // The latest is the last of the map.
    rows.delete(key);
    rows.set(key, { name, type, at: seq });
    if (rows.size > MAX_ROWS) {
      rows.delete(rows.keys().next().value!);
    }
  };
  const recordWritten = (): void => {
    timer = undefined;
    for (const name of written) {
      record(name, "updated");
    }
    written.clear();
    notify();
  };

  for (const name of names) {
    record(name, "updated");
  }
  const token = (at: number): string => `${at}-${process}`;

  return {
    seq: () => seq,
    isClosed: () => isClosed,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    add: (name, type) => {
      if (type === "updated") {
        written.add(name);
        timer ??= setTimeout(recordWritten, UPDATE_DELAY_MS).unref();
        return;
      }
      if (type === "deleted") {
        written.delete(name);
        rows.delete(`created:${name}`);
        rows.delete(`updated:${name}`);
      }
      record(name, type);
      notify();
    },
    after: (since) =>
      [...rows.values()]
        .filter(({ at }) => at > since)
        .map(({ name, type, at }) => ({
          db_name: name,
          type,
          seq: token(at),
        })),
    token,
    seqOf: (text) => {
      if (text === "now") {
        return seq;
      }
      const [at, of] = (text ?? "").split("-");
      return of === process ? Number(at) || 0 : 0;
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      notify();
    },
  };
}
