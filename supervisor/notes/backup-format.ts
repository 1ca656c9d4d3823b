import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import { readCompressed } from "../backup/backup-files.ts";
import { readManifest } from "../backup/manifest.ts";
import { Failure } from "../failure.ts";
import type { CouchDocument } from "./database.ts";

/**
 * A backup of the notes store: `manifest.json`, `config.json.gz` (the server's settings), `users.jsonl.gz`, and one
 * `vault-<n>.jsonl.gz` a vault: a line with what is about the vault, then a line for each leaf with its history.
 */
const manifest = z.looseObject({
  format: z.literal(1),
  kind: z.literal("notes"),
  takenAt: z.number(),
  files: z.array(
    z.looseObject({ name: z.string(), bytes: z.number(), sha256: z.string() }),
  ),
  vaults: z.array(
    z.looseObject({
      name: z.string(),
      file: z.string(),
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

export const usersFile = "users.jsonl.gz";
export const configFile = "config.json.gz";

/** Throws a Failure when the backup is not there, not as it was written, or not of this kind. */
export function readNotesManifest(directory: string): NotesManifest {
  const parsed = manifest.safeParse(readManifest(directory));
  if (parsed.success) return parsed.data;
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
export function parseHead(line: string): VaultHead {
  return vaultHead.parse(JSON.parse(line));
}

export function parseDocument(line: string): CouchDocument {
  return JSON.parse(line) as CouchDocument;
}
