import { z } from "zod";
import { notifySchema, peerSchema, watchdogSchema } from "../alerts/config.ts";
import { backupsSchema } from "../backup/config.ts";
import {
  checkSchema,
  maintenanceSchema,
  offlineSchema,
} from "../checks/config.ts";
import { jobsSchema } from "../jobs/config.ts";
import { usageAlertsSchema } from "../usage-alerts/config.ts";
import { signInSchema } from "../sign-in/config.ts";
import { notesSchema } from "../vaults/config.ts";
import { duration, times } from "./fields.ts";

const restarts = z.strictObject({
  max: times.default(10),
  per: duration.prefault("10m"),
  first_wait: duration.prefault("200ms"),
  longest_wait: duration.prefault("30s"),
});

export const configSchema = z.strictObject({
  restarts: restarts.prefault({}),
  checks: z.array(checkSchema).default([]),
  maintenance: maintenanceSchema,
  offline: offlineSchema,
  jobs: jobsSchema,
  backups: backupsSchema,
  notes: notesSchema,
  notify: notifySchema,
  usage_alerts: usageAlertsSchema,
  sign_in: signInSchema,
  watchdog: watchdogSchema,
  peer: peerSchema,
});

/** config/supervisor.yaml as read; durations in milliseconds. */
export type SupervisorConfig = Readonly<z.output<typeof configSchema>>;
