import { backupJobs } from "../backup/backup-jobs.ts";
import {
  awaitKeyShown,
  copyJobs,
  KEY_FINGERPRINT,
} from "../backup/copy-jobs.ts";
import { SIZE_FINGERPRINT } from "../backup/size-cap.ts";
import {
  OFFSITE_SIZE_FINGERPRINT,
  offsiteJobs,
} from "../offsite/offsite-jobs.ts";
import { reportJobs } from "../reports/report-jobs.ts";
import type { MakeReport } from "../reports/reporting.ts";
import type { Context, Module } from "../context.ts";
import { jobsAreOn } from "./job-switch.ts";
import { ledgerCheckJob } from "./ledger-check.ts";
import { retentionJob } from "./retention.ts";

/** Alarms about what the jobs of this host find. */
const FINDINGS = [KEY_FINGERPRINT, SIZE_FINGERPRINT, OFFSITE_SIZE_FINGERPRINT];

/** The jobs of this supervisor. Opened and started last, after every module has added its own. */
export function openJobsModule(
  context: Context,
  makeReport: MakeReport,
): Module {
  const { jobs, alarms, env } = context;
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
      if (!jobsAreOn(env)) {
        // They may be of the previous process, which ran the jobs.
        FINDINGS.forEach((fingerprint) => alarms.clear(fingerprint));
      }
      jobs.start();
      stopKeyPolling = awaitKeyShown(context);
    },
    stop: async () => {
      stopKeyPolling();
      await jobs.stop();
    },
  };
}
