import { hash } from "node:crypto";
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
  /** When it was shown to a person; null if never. */
  shownAt: z.number().nullable(),
});
type CopyKey = Readonly<z.output<typeof stored>>;

function fileOf(home: Home): string {
  return join(home.root, "backup-copy-key.json");
}

/** The key of copies on the other host, if any. BACKUP_COPY_KEY takes precedence over the file in the home. */
export function findCopyKey(home: Home, env: Environment): CopyKey | undefined {
  const given = readVariable("BACKUP_COPY_KEY", env);
  if (given !== undefined) {
    parseCopyKey(given);
    // Set by the operator, who has it.
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
      `cannot read ${path}: restore it from a copy, or remove it and create another key with \`hearth backup key --new\`.`,
    );
  }
}

/** Creates a key in the home (0600), replacing an existing one. */
export function makeAndKeepCopyKey(home: Home, now: number): CopyKey {
  return keep(home, { key: makeCopyKey(), madeAt: now, shownAt: null });
}

/** Records that the key was shown. */
export function markShown(home: Home, key: CopyKey, now: number): void {
  keep(home, { ...key, shownAt: now });
}

function keep(home: Home, key: CopyKey): CopyKey {
  writeDurably(fileOf(home), `${JSON.stringify(key)}\n`);
  return key;
}

/** Identifies a key without revealing it: 8 hex digits. */
export function keyId(key: string): string {
  return hash("sha256", `hearth copy key ${key}`).slice(0, 8);
}
