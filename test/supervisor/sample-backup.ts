import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  momentOf,
  writeManifest,
  type Manifest,
} from "../../supervisor/backup/manifest.ts";

const PARTS = {
  postgres: {
    serverVersion: "18.1",
    migrations: ["0001_start"],
    tables: [
      { name: "keys", columns: ["token"], file: "keys", rows: 3 },
      { name: "spend_log", columns: ["id"], file: "log", rows: 1204 },
    ].map((table) => ({ ...table, partition: null })),
    sequences: [],
    sums: {
      calls: "1204",
      spend: "41.55",
      corrections: "0",
      archived: "0",
      daily: "41.55",
      totals: "41.55",
      keys: "3",
    },
  },
  notes: { users: 2 },
};

/** A complete backup in `backups/<kind>/<name>`, whose only file has no data; one of the notes with so many documents of each vault. */
export function writeSampleBackup(
  backups: string,
  kind: Manifest["kind"],
  name: string,
  documents: Readonly<Record<string, number>> = { family: 312, work: 1 },
): void {
  const directory = join(backups, kind, name);
  mkdirSync(directory, { recursive: true });
  const bytes = 2048;
  writeFileSync(join(directory, "data"), "x".repeat(bytes));
  writeManifest(directory, {
    format: 1,
    kind,
    takenAt: momentOf(name) ?? 0,
    files: [{ name: "data", bytes, sha256: "0".repeat(64) }],
    ...PARTS[kind],
    ...(kind === "notes" && {
      vaults: Object.entries(documents).map(([vault, count]) => ({
        name: vault,
        documents: count,
        file: `${vault}.jsonl.gz`,
        leaves: count,
        missing: [],
      })),
    }),
  });
}
