import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { requireFiles, sizeOf } from "../../supervisor/backup/backup-files.ts";
import {
  listBackups,
  momentOf,
  readManifest,
} from "../../supervisor/backup/manifest.ts";
import type { Peer } from "../../supervisor/backup/peer.ts";
import { listPeerCopies } from "../../supervisor/backup/send-copy.ts";
import { sentencesOf, textOf } from "../../core/failure.ts";
import { sendError } from "./send-error.ts";

/** One line of `hearth backup list`. Times in milliseconds since 1970. */
export interface BackupView {
  readonly kind: string;
  readonly name: string;
  readonly takenAt: number;
  readonly bytes: number;
  /** Null when the manifest is valid and all files are there; `hearth backup verify` reads them. */
  readonly problem: string | null;
}

const KINDS = ["postgres", "notes"];
const PEER_WITHIN_MS = 10_000;

/** GET /api/backups: the backups in `directory`, newest first; GET /api/peer-copies: their copies on the other host. */
export function registerBackupRoutes(
  server: FastifyInstance,
  directory: string,
  peer: Peer | undefined,
): void {
  server.get("/api/peer-copies", async (_request, reply) => {
    if (peer === undefined) {
      return sendError(
        reply,
        409,
        "no other host is configured; set HEARTH_PEER_URL to the address of its supervisor.",
      );
    }
    try {
      const signal = AbortSignal.timeout(PEER_WITHIN_MS);
      return reply.send({ copies: await listPeerCopies(peer, signal) });
    } catch (error) {
      return sendError(reply, 502, sentencesOf(error).join(" "));
    }
  });
  server.get("/api/backups", () => ({
    backups: KINDS.flatMap((kind) =>
      viewsOf(join(directory, kind), kind),
    ).toSorted((a, b) => b.takenAt - a.takenAt),
  }));
}

function viewsOf(directory: string, kind: string): readonly BackupView[] {
  return listBackups(directory).map((name) => {
    const backup = join(directory, name);
    let problem: string | null = null;
    try {
      requireFiles(backup, readManifest(backup).files);
    } catch (error) {
      problem = textOf(error);
    }
    const takenAt = momentOf(name) ?? 0;
    return { kind, name, takenAt, bytes: sizeOf(backup), problem };
  });
}
