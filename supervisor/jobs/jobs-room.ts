import { backupJobs } from "../backup/backup-jobs.ts";
import { registerBackupRoutes } from "../http/backup-routes.ts";
import { registerJobRoutes } from "../http/job-routes.ts";
import type { Room, Surroundings } from "../supervision.ts";
import { ledgerCheckJob } from "./ledger-check.ts";
import { retentionJob } from "./retention.ts";

/** The jobs of this supervisor. The room is opened last, and begins last: by then every room has added its own. */
export function openJobsRoom(surroundings: Surroundings): Room {
  const { home, jobs } = surroundings;
  for (const job of [
    ...backupJobs(surroundings),
    ledgerCheckJob(surroundings),
    retentionJob(surroundings),
  ])
    jobs.add(job);
  return {
    routes: (server) => {
      registerJobRoutes(server, jobs);
      registerBackupRoutes(server, home.backups);
    },
    begin: jobs.begin,
    stop: jobs.stop,
  };
}
