import type { FastifyInstance } from "fastify";
import type { Environment } from "../../../core/environment.ts";
import { peerOf } from "../../../supervisor/backup/peer.ts";
import type { Home } from "../../../supervisor/home/home.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import { findOffsite } from "../../../supervisor/offsite/settings.ts";
import { offsiteWarning } from "../../../supervisor/offsite/warning.ts";
import { showPage } from "../../http/show-page.ts";
import { hearthCommand } from "../hearth-command.ts";
import { readBackups } from "./backup-reader.ts";
import { backupsHeading, viewBackups } from "./backups-view.ts";

const PATH = "/backups";

interface BackupsPageParts {
  readonly home: Home;
  readonly env: Environment;
  readonly jobs: JobRunner;
  /** IANA name. */
  readonly timeZone: string;
}

/** GET /backups. */
export function registerBackupsPage(
  server: FastifyInstance,
  { home, env, jobs, timeZone }: BackupsPageParts,
): void {
  server.get(PATH, (request, reply) => {
    const facts = {
      backups: readBackups(home.backups, jobs),
      jobs: jobs.list(),
      offsiteTarget: targetOf(home, env),
      offsiteWarning: offsiteWarning(home, env),
      hearth: hearthCommand(env),
      hasPeer: peerOf(env, "") !== undefined,
      now: Date.now(),
      timeZone,
    };
    const isBusy = facts.jobs.some(({ running }) => running !== null);
    return showPage(
      request,
      reply,
      {
        ...backupsHeading(facts),
        current: PATH,
        refreshes: isBusy ? "soon" : true,
        json: "/api/backups",
      },
      "backups",
      viewBackups(facts),
    );
  });
}

/** The target without what may be a password: rclone takes settings between a leading and a second colon. */
function targetOf(home: Home, env: Environment): string | null {
  try {
    const target = findOffsite(home, env)?.target ?? null;
    return target?.replace(/^([^:,]*:?[^:,]*),.*:/, "$1:") ?? null;
  } catch {
    // Reported by the warning.
    return null;
  }
}
