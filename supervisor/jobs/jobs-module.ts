import { backupJobs } from "../backup/backup-jobs.ts";
import { awaitKeyShown, copyJobs } from "../backup/copy-jobs.ts";
import { offsiteJobs } from "../offsite/offsite-jobs.ts";
import { reportJobs } from "../reports/report-jobs.ts";
import type { MakeReport } from "../reports/reporting.ts";
import type { Context, Module } from "../context.ts";
import { ledgerCheckJob } from "./ledger-check.ts";
import { retentionJob } from "./retention.ts";

/** The jobs of this supervisor. Opened and started last, after every module has added its own. */
export function openJobsModule(
  context: Context,
  makeReport: MakeReport,
): Module {
  const { jobs } = context;
  for (const job of [
    ...backupJobs(context),
    ...copyJobs(context),
    ...offsiteJobs(context),
    ledgerCheckJob(context),
    retentionJob(context),
    ...reportJobs(context, makeReport),
  ]) {
    jobs.add(job);
  }
  let stopKeyPolling = () => {};
  return {
    start: () => {
      jobs.start();
      stopKeyPolling = awaitKeyShown(context);
    },
    stop: async () => {
      stopKeyPolling();
      await jobs.stop();
    },
  };
}
