import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import { readCompressed } from "../backup/backup-files.ts";
import { listBackups, rankBackups, readManifest } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import type { CouchDocument } from "./database.ts";

/**
 * A backup of the notes store: `manifest.json`, `config.json.gz` (the server's settings), `users.jsonl.gz`, and for each vault
 * `vault-<n>.jsonl.gz`: a head line that describes the vault, then a line for each leaf with its history. That file contains the
 * documents that are new or changed since the previous backup; the others are in `parts`, files of earlier backups that this one
 * links to. For a document in several files the first one is valid, in the order `file`, then `parts`.
 */
const manifest = z.looseObject({
  format: z.literal(1),
  kind: z.literal("notes"),
  takenAt: z.number(),
  /** The version of Hearth that created the backup; absent in older backups. */
  madeBy: z.string().optional(),
  files: z.array(
    z.looseObject({ name: z.string(), bytes: z.number(), sha256: z.string() }),
  ),
  vaults: z.array(
    z.looseObject({
      name: z.string(),
      file: z.string(),
      /** Newest first; empty in backups that predate incremental ones. */
      parts: z
        .array(
          z.looseObject({
            file: z.string(),
            /** Uncompressed bytes of its lines. */
            size: z.number(),
          }),
        )
        .default([]),
      /** Uncompressed bytes of the lines of `file`; absent in older backups. */
      size: z.number().optional(),
      /** Identifies the database: another one with the same name shares no revisions with it. */
      instance: z.string().optional(),
      documents: z.number(),
      leaves: z.number(),
      /** Documents with a leaf whose body the store did not return. */
      missing: z.array(z.string()),
    }),
  ),
  users: z.number(),
});
export type NotesManifest = Readonly<z.output<typeof manifest>>;
export type VaultEntry = NotesManifest["vaults"][number];
export type VaultPart = VaultEntry["parts"][number];

const rights = z.object({
  names: z.array(z.string()),
  roles: z.array(z.string()),
});
const vaultHead = z.looseObject({
  vault: z.string(),
  instance: z.string(),
  security: z.object({ admins: rights, members: rights }),
  /** The two documents that replication omits: the security seed and the milestone. */
  locals: z.array(z.looseObject({ _id: z.string() })),
});
export type VaultHead = Readonly<z.output<typeof vaultHead>>;

export const USERS_FILE = "users.jsonl.gz";
export const CONFIG_FILE = "config.json.gz";

/** Throws a Failure when the backup is missing, damaged or of another kind. */
export function readNotesManifest(directory: string): NotesManifest {
  const parsed = manifest.safeParse(readManifest(directory));
  if (parsed.success) {
    return parsed.data;
  }
  throw new Failure(
    `${directory} is not a backup of the notes store. Run \`hearth notes backup --list\` to list the backups.`,
  );
}

/** The readable backups in `backups/notes` that contain a vault, newest first; the drill reports others. */
export function* backupsOf(
  directory: string,
  vault: string,
  now: number,
): Generator<{ readonly name: string; readonly entry: VaultEntry }> {
  for (const name of rankBackups(listBackups(directory), now)) {
    const entry = entryIn(join(directory, name), vault);
    if (entry !== undefined) {
      yield { name, entry };
    }
  }
}

function entryIn(backup: string, vault: string): VaultEntry | undefined {
  try {
    return readNotesManifest(backup).vaults.find(({ name }) => name === vault);
  } catch (error) {
    if (error instanceof Failure) {
      return undefined;
    }
    throw error;
  }
}

/** The lines of a compressed file of a backup, in order. */
export async function* readLines(
  backup: string,
  name: string,
): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of readCompressed(backup, name)) {
    const text = decoder.write(chunk as Buffer);
    // A line can have 50 MB, so each chunk is searched only once.
    if (!text.includes("\n")) {
      rest += text;
      continue;
    }
    const [first = "", ...more] = text.split("\n");
    yield rest + first;
    rest = more.pop() ?? "";
    yield* more;
  }
}

/** The first line of a vault's file, which describes the vault. */
export async function readHead(
  backup: string,
  { file }: Pick<VaultEntry, "file">,
): Promise<VaultHead> {
  const lines = readLines(backup, file);
  const first = await lines.next();
  await lines.return(undefined);
  return vaultHead.parse(JSON.parse(first.done === true ? "" : first.value));
}

export function parseDocument(line: string): CouchDocument {
  return JSON.parse(line) as CouchDocument;
}

/** The lines of a vault's leaves; for each document those of the newest file that contains it. */
export async function* readLeaves(
  backup: string,
  { file, parts }: Pick<VaultEntry, "file" | "parts">,
): AsyncGenerator<string> {
  const superseded = new Set<string>();
  for (const [index, name] of [
    file,
    ...parts.map((part) => part.file),
  ].entries()) {
    const inThis = new Set<string>();
    let isHead = true;
    for await (const line of readLines(backup, name)) {
      const { id } = isHead ? NO_LEAF : leafOf(line);
      if (!isHead && !superseded.has(id)) {
        yield line;
      }
      // No file follows the last one.
      if (!isHead && index < parts.length) {
        inThis.add(id);
      }
      isHead = false;
    }
    for (const id of inThis) {
      superseded.add(id);
    }
  }
}

const NO_LEAF = { id: "", rev: "" };

/**
 * Id and revision of a line. Stores write them first, so a line of 50 MB does not have to be parsed. Both are copies: a part of
 * the line would keep all of it in memory, for every document of a vault.
 */
export function leafOf(line: string): {
  readonly id: string;
  readonly rev: string;
} {
  const [, id, rev] =
    /^\{"_id":("(?:[^"\\]|\\.){0,8192}"),"_rev":("[^"\\]{1,200}")/.exec(line) ??
    [];
  if (id !== undefined && rev !== undefined) {
    return { id: JSON.parse(id) as string, rev: JSON.parse(rev) as string };
  }
  const document = parseDocument(line);
  return { id: document._id, rev: document._rev };
}
