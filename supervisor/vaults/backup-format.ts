import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import { readCompressed } from "../backup/backup-files.ts";
import { readManifest } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import type { CouchDocument } from "./database.ts";

/**
 * A backup of the notes store: `manifest.json`, `config.json.gz` (the server's settings), `users.jsonl.gz`, and for each vault
 * `vault-<n>.jsonl.gz`: a line with what is about the vault, then a line for each leaf with its history. That file holds the
 * documents that are not in the backup before as they are now; the others are in `parts`, files of earlier backups that this one
 * has links to. A document that is in several files counts as the first of them has it, in the order `file`, then `parts`.
 */
const manifest = z.looseObject({
  format: z.literal(1),
  kind: z.literal("notes"),
  takenAt: z.number(),
  /** The version of Hearth that took it; absent in older backups. */
  madeBy: z.string().optional(),
  files: z.array(
    z.looseObject({ name: z.string(), bytes: z.number(), sha256: z.string() }),
  ),
  vaults: z.array(
    z.looseObject({
      name: z.string(),
      file: z.string(),
      /** Newest first; none in backups of before there were any. */
      parts: z
        .array(
          z.looseObject({
            file: z.string(),
            /** Of its lines, uncompressed. */
            size: z.number(),
          }),
        )
        .default([]),
      /** Of the lines of `file`, uncompressed; unknown in older backups. */
      size: z.number().optional(),
      /** Of the database that it is of: another one of the same name shares no revisions with it. */
      instance: z.string().optional(),
      documents: z.number(),
      leaves: z.number(),
      /** Leaves whose body the store could not give. */
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
  /** The two documents that replication leaves out: the security seed and the milestone. */
  locals: z.array(z.looseObject({ _id: z.string() })),
});
export type VaultHead = Readonly<z.output<typeof vaultHead>>;

export const USERS_FILE = "users.jsonl.gz";
export const CONFIG_FILE = "config.json.gz";

/** Throws a Failure when the backup is not there, not as it was written, or not of this kind. */
export function readNotesManifest(directory: string): NotesManifest {
  const parsed = manifest.safeParse(readManifest(directory));
  if (parsed.success) {
    return parsed.data;
  }
  throw new Failure(
    `${directory} is no backup of the notes store: \`hearth notes backup --list\` shows those there are.`,
  );
}

/** The lines of a compressed file of a backup, one after the other. */
export async function* readLines(
  backup: string,
  name: string,
): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of readCompressed(backup, name)) {
    const text = decoder.write(chunk as Buffer);
    // A line may have 50 MB: it is searched once.
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

/** What is about the vault, from the first line of its file. */
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

/** The lines of a vault's leaves, each document's as the newest file has them. */
export async function* readLeaves(
  backup: string,
  { file, parts }: Pick<VaultEntry, "file" | "parts">,
): AsyncGenerator<string> {
  const older = new Set<string>();
  for (const [index, name] of [
    file,
    ...parts.map((part) => part.file),
  ].entries()) {
    const inThis = new Set<string>();
    let isHead = true;
    for await (const line of readLines(backup, name)) {
      const { id } = isHead ? noLeaf : leafOf(line);
      if (!isHead && !older.has(id)) {
        yield line;
      }
      // Of the last file nobody asks any more.
      if (!isHead && index < parts.length) {
        inThis.add(id);
      }
      isHead = false;
    }
    for (const id of inThis) {
      older.add(id);
    }
  }
}

const noLeaf = { id: "", rev: "" };

/** Id and revision of a line. A store gives them first, so a line of 50 MB need not be parsed for them. */
export function leafOf(line: string): {
  readonly id: string;
  readonly rev: string;
} {
  const [, id, rev] =
    /^\{"_id":("(?:[^"\\]|\\.){0,8192}"),"_rev":"([^"\\]{1,200})"/.exec(line) ??
    [];
  if (id !== undefined && rev !== undefined) {
    return { id: JSON.parse(id) as string, rev };
  }
  const document = parseDocument(line);
  return { id: document._id, rev: document._rev };
}
