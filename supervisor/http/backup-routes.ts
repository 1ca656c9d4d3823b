import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { sizeOf } from "../backup/backup-files.ts";
import { listBackups, momentOf, readManifest } from "../backup/manifest.ts";
import { textOf } from "../failure.ts";

/** One line of `hearth backup list`. Times in milliseconds since 1970. */
export type BackupView = {
  readonly kind: string;
  readonly name: string;
  readonly takenAt: number;
  readonly bytes: number;
  /** Null when the manifest is as it was written; the files are read by `hearth backup verify`. */
  readonly problem: string | null;
};

const kinds = ["postgres", "notes"];

/** GET /api/backups: what lies in `directory`, newest first. */
export function registerBackupRoutes(
  server: FastifyInstance,
  directory: string,
): void {
  server.get("/api/backups", () => ({
    backups: kinds
      .flatMap((kind) => viewsOf(join(directory, kind), kind))
      .toSorted((a, b) => b.takenAt - a.takenAt),
  }));
}

function viewsOf(directory: string, kind: string): readonly BackupView[] {
  return listBackups(directory).map((name) => {
    const backup = join(directory, name);
    let problem: string | null = null;
    try {
      readManifest(backup);
    } catch (error) {
      problem = textOf(error);
    }
    const takenAt = momentOf(name) ?? 0;
    return { kind, name, takenAt, bytes: sizeOf(backup), problem };
  });
}
