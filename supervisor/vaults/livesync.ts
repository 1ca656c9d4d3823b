import { z } from "zod";

/** Ids of the documents that the plugin keeps beside the notes. */
export const SEED_ID = "_local/obsidian_livesync_sync_parameters";
export const MILESTONE_ID = "_local/obsydian_livesync_milestone";

/** Chunks of an encrypted vault lie between these ids. */
export const ENCRYPTED_CHUNKS = ["h:+", "h:+\uffff"] as const;

/** What a note's document is: its text lies in chunks of type `leaf`. */
export const NOTE_TYPES = ["plain", "newnote"] as const;

const seed = z.looseObject({ pbkdf2salt: z.string().default("") });

/** The security seed without its revision. */
export type Seed = Readonly<Record<string, unknown>> & {
  readonly pbkdf2salt: string;
};

/** The seed in a document; undefined while it is missing or still empty (a device writes it empty first). */
export function seedOf(document: unknown): Seed | undefined {
  const parsed = seed.safeParse(document);
  if (!parsed.success || parsed.data.pbkdf2salt === "") {
    return undefined;
  }
  const { _rev: _revision, ...rest } = parsed.data;
  return rest;
}

/** Paths and times of encrypted notes are inside the encryption. */
export function isEncryptedPath(path: string): boolean {
  return path.startsWith("/\\:");
}
