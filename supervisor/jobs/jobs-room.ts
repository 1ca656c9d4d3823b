import { join } from "node:path";
import { backupJobs } from "../backup/backup-jobs.ts";
import { openCopies } from "../backup/copies.ts";
import { awaitKeyShown, copyJobs } from "../backup/copy-jobs.ts";
import { peerOf } from "../backup/peer.ts";
import { registerBackupRoutes } from "../../console/http/backup-routes.ts";
import { registerCopyRoutes } from "../../console/http/copy-routes.ts";
import { registerJobRoutes } from "../../console/http/job-routes.ts";
import { registerReportRoutes } from "../../console/http/report-routes.ts";
import { offsiteJobs } from "../offsite/offsite-jobs.ts";
import { registerJobsPage } from "../../console/pages/jobs/jobs-page.ts";
import { registerReportsPage } from "../../console/pages/reports/reports-page.ts";
import { reportJobs } from "../reports/report-jobs.ts";
import { openReporting } from "../reports/reporting.ts";
import { watchSoftBudgets } from "../reports/soft-budgets.ts";
import type { Room, Surroundings } from "../supervision.ts";
import { ledgerCheckJob } from "./ledger-check.ts";
import { retentionJob } from "./retention.ts";

/** The jobs of this supervisor. The room is opened last, and begins last: by then every room has added its own. */
export function openJobsRoom(surroundings: Surroundings): Room {
  const { home, jobs, env, config, credentials } = surroundings;
  const { backup_copy, notes_backup, postgres_backup, time_zone } = config.jobs;
  const makeReport = openReporting(surroundings);
  for (const job of [
    ...backupJobs(surroundings),
    ...copyJobs(surroundings),
    ...offsiteJobs(surroundings),
    ledgerCheckJob(surroundings),
    retentionJob(surroundings),
    ...reportJobs(surroundings, makeReport),
  ]) {
    jobs.add(job);
  }
  let endKeyLooks = () => {};
  let endBudgetLooks = () => {};
  return {
    routes: (server) => {
      registerJobRoutes(server, jobs);
      registerJobsPage(server, jobs);
      registerBackupRoutes(
        server,
        home.backups,
        peerOf(env, credentials().operatorPassword),
      );
      registerCopyRoutes(
        server,
        openCopies(join(home.backups, "copies"), {
          most: backup_copy.accept_at_most,
          keep: (kind) =>
            (kind === "notes" ? notes_backup : postgres_backup).keep,
          timeZone: time_zone,
        }),
      );
      registerReportRoutes(server, { makeReport });
      registerReportsPage(server, {
        makeReport,
        directory: home.reports,
        timeZone: time_zone,
        jobs,
      });
    },
    begin: () => {
      jobs.begin();
      endKeyLooks = awaitKeyShown(surroundings);
      endBudgetLooks = watchSoftBudgets(surroundings);
    },
    stop: async () => {
      endKeyLooks();
      endBudgetLooks();
      await jobs.stop();
    },
  };
}
