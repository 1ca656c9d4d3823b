import { z } from "zod";

/** Ids of the plugin's own documents. */
export const SEED_ID = "_local/obsidian_livesync_sync_parameters";
export const MILESTONE_ID = "_local/obsydian_livesync_milestone";

/** The range of ids of an encrypted vault's chunks. */
export const ENCRYPTED_CHUNKS = ["h:+", "h:+\uffff"] as const;

/** The plugin's second encryption, which needs the security seed; texts of the first start with `%` only. */
export const SEEDED_PREFIX = "%=";

/** Types of a note's document; its text is stored in chunks of type `leaf`. */
export const NOTE_TYPES = ["plain", "newnote"] as const;

const seed = z.looseObject({ pbkdf2salt: z.string().default("") });

/** The security seed without its revision. */
export type Seed = Readonly<Record<string, unknown>> & {
  readonly pbkdf2salt: string;
};

/** The seed in a document; undefined while it is missing or empty (devices write it empty first). */
export function seedOf(document: unknown): Seed | undefined {
  const parsed = seed.safeParse(document);
  if (!parsed.success || parsed.data.pbkdf2salt === "") {
    return undefined;
  }
  const { _rev: _revision, ...rest } = parsed.data;
  return rest;
}

/** Paths and times of encrypted notes are encrypted, too. */
export function isEncryptedPath(path: string): boolean {
  return path.startsWith("/\\:");
}
