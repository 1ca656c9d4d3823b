import { hash } from "node:crypto";
import { newDevice, type Device } from "./devices.ts";

/** Characters per chunk, similar to LiveSync. */
const CHUNK_LENGTH = 100_000;

/** A file's metadata as LiveSync stores it; with E2EE the server sees only the type and whether it is deleted. */
interface Metadata {
  readonly _id: string;
  readonly _rev?: string;
  readonly _conflicts?: readonly string[];
  readonly type: "plain";
  readonly path: string;
  readonly mtime: number;
  readonly children: readonly string[];
  readonly deleted?: boolean;
}

export type Vault = Readonly<Record<string, string>>;

/**
 * A device that stores a vault like the LiveSync plugin: metadata documents with lists of content-addressed chunks. It pulls with
 * `{type: {$ne: "leaf"}}` and fetches chunks when they are needed. Deleting and renaming are updates.
 */
export interface VaultDevice {
  readonly write: (path: string, text: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  readonly rename: (from: string, to: string) => Promise<void>;
  /** Pushes and pulls once. */
  readonly sync: (server: Device) => Promise<void>;
  /** All files with their content. Throws if a chunk is neither on the device nor on the server. */
  readonly files: (server: Device) => Promise<Vault>;
  /** Ids of the notes with conflicts on the device. */
  readonly conflicted: () => Promise<string[]>;
  /** Resolves every conflict, by a function that merges both texts or by keeping the newer version. */
  readonly resolve: (
    server: Device,
    how: "newer" | ((one: string, other: string) => string),
  ) => Promise<void>;
  readonly local: Device;
}

type Stored = Readonly<Record<string, unknown>> & { readonly _id: string };

/** Encrypts and decrypts a device's documents. */
export interface Encryption {
  readonly seal: (document: Stored) => Promise<Stored>;
  readonly open: (document: Stored) => Promise<Stored>;
}

const unencrypted: Encryption = {
  seal: async (document) => document,
  open: async (document) => document,
};

/** `clock` returns the times of edits in milliseconds. */
export function newVaultDevice(
  clock: () => number,
  { seal, open }: Encryption = unencrypted,
): VaultDevice {
  const local = newDevice();
  const put = async (document: Stored): Promise<void> => {
    await local.put((await seal(document)) as { _id: string });
  };

  const metadata = async (path: string): Promise<Metadata | undefined> => {
    const stored = await local.get(idOf(path)).catch(() => undefined);
    return stored === undefined
      ? undefined
      : ((await open(stored)) as unknown as Metadata);
  };

  const store = async (
    path: string,
    text: string,
    rev: string | undefined,
  ): Promise<void> => {
    const chunks = split(text);
    const known = await local.allDocs({
      keys: chunks.map((chunk) => chunk._id),
    });
    const missing = chunks.filter(
      (_chunk, index) => known.rows[index]?.id === undefined,
    );
    await local.bulkDocs(await Promise.all(missing.map(seal)));
    await put({
      _id: idOf(path),
      ...(rev === undefined ? {} : { _rev: rev }),
      type: "plain",
      path,
      mtime: clock(),
      children: chunks.map((chunk) => chunk._id),
    });
  };

  const remove = async (path: string): Promise<void> => {
    const before = await metadata(path);
    await put({ ...before!, deleted: true, mtime: clock() });
  };

  const textIn = async (chunk: Stored): Promise<string> =>
    (await open(chunk)).data as string;

  const textOf = async (
    server: Device,
    children: readonly string[],
  ): Promise<string> => {
    if (children.length === 0) {
      return "";
    }
    const here = await local.allDocs({ keys: children, include_docs: true });
    const data = new Map<string, string>();
    for (const { id, doc } of here.rows) {
      if (doc?.data !== undefined) {
        data.set(id, await textIn(doc));
      }
    }
    const missing = children.filter((id) => data.get(id) === undefined);
    if (missing.length > 0) {
      const there = await server.allDocs({ keys: missing, include_docs: true });
      for (const { id, doc } of there.rows) {
        if (doc?.data !== undefined) {
          data.set(id, await textIn(doc));
        }
      }
    }
    return children
      .map((id) => {
        const text = data.get(id);
        if (text === undefined) {
          throw new Error(`chunk ${id} is missing`);
        }
        return text;
      })
      .join("");
  };

  const notes = async (): Promise<Metadata[]> => {
    const all = await local.allDocs({ include_docs: true, conflicts: true });
    const opened = await Promise.all(all.rows.map((row) => open(row.doc!)));
    return opened
      .map((doc) => doc as unknown as Metadata)
      .filter((doc) => doc.type === "plain");
  };

  return {
    local,
    write: async (path, text) =>
      await store(path, text, (await metadata(path))?._rev),
    remove,
    rename: async (from, to) => {
      const before = await metadata(from);
      await put({
        _id: idOf(to),
        type: "plain",
        path: to,
        mtime: clock(),
        children: before!.children,
      });
      await remove(from);
    },
    sync: async (server) => {
      await local.replicate.to(server, { batch_size: 100 });
      await local.replicate.from(server, {
        selector: { type: { $ne: "leaf" } },
        batch_size: 25,
      });
    },
    files: async (server) => {
      const found: Record<string, string> = {};
      for (const note of await notes()) {
        if (note.deleted === true) {
          continue;
        }
        found[note.path] = await textOf(server, note.children);
      }
      return found;
    },
    conflicted: async () =>
      (await notes())
        .filter((note) => note._conflicts !== undefined)
        .map((note) => note._id),
    resolve: async (server, how) => {
      for (const note of await notes()) {
        for (const rev of note._conflicts ?? []) {
          const other = (await open(
            await local.get(note._id, { rev }),
          )) as unknown as Metadata;
          const current = (await open(
            await local.get(note._id),
          )) as unknown as Metadata;
          if (how !== "newer") {
            const text = how(
              await textOf(server, current.children),
              await textOf(server, other.children),
            );
            await store(note.path, text, current._rev);
            await put({ ...other, _deleted: true });
          } else {
            const older = other.mtime > current.mtime ? current : other;
            await put({ ...older, _deleted: true });
          }
        }
      }
    },
  };
}

function idOf(path: string): string {
  return `f:${hash("sha256", path)}`;
}

function split(text: string): { _id: string; type: "leaf"; data: string }[] {
  const chunks = new Map<string, { _id: string; type: "leaf"; data: string }>();
  const pieces: { _id: string; type: "leaf"; data: string }[] = [];
  for (let at = 0; at < text.length; at += CHUNK_LENGTH) {
    const data = text.slice(at, at + CHUNK_LENGTH);
    const _id = `h:+${hash("sha256", data, "base64").slice(0, 14)}`;
    const chunk = chunks.get(_id) ?? { _id, type: "leaf" as const, data };
    chunks.set(_id, chunk);
    pieces.push(chunk);
  }
  return pieces;
}
