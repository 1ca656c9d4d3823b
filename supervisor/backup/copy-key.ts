import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../core/durable-file.ts";
import type { Home } from "../home/home.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure, codeOf } from "../../core/failure.ts";
import { makeCopyKey, parseCopyKey } from "./sealing.ts";

const stored = z.strictObject({
  key: z.string(),
  madeAt: z.number(),
  /** When a person saw it; null as long as nobody has. */
  shownAt: z.number().nullable(),
});
export type CopyKey = Readonly<z.output<typeof stored>>;

function fileOf(home: Home): string {
  return join(home.root, "backup-copy-key.json");
}

/** The key that copies on the other host are encrypted with, if there is one. BACKUP_COPY_KEY wins over the file in the home. */
export function findCopyKey(home: Home, env: Environment): CopyKey | undefined {
  const given = readVariable("BACKUP_COPY_KEY", env);
  if (given !== undefined) {
    parseCopyKey(given);
    // Who sets it has it.
    return { key: given, madeAt: 0, shownAt: 0 };
  }
  const path = fileOf(home);
  try {
    return stored.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw new Failure(
      `${path} cannot be read: put it back from a copy, or remove it and make another key with \`hearth backup key --new\`.`,
    );
  }
}

/** Makes a key and keeps it in the home (0600), in place of one that may be there. */
export function makeAndKeepCopyKey(home: Home, now: number): CopyKey {
  return keep(home, { key: makeCopyKey(), madeAt: now, shownAt: null });
}

/** Remembers that a person has seen the key. */
export function markShown(home: Home, key: CopyKey, now: number): void {
  keep(home, { ...key, shownAt: now });
}

function keep(home: Home, key: CopyKey): CopyKey {
  writeDurably(fileOf(home), `${JSON.stringify(key)}\n`);
  return key;
}

/** Tells keys apart without giving any away: 8 hex digits. */
export function keyId(key: string): string {
  return createHash("sha256")
    .update(`hearth copy key ${key}`)
    .digest("hex")
    .slice(0, 8);
}
