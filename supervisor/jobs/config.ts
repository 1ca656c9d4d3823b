import { z } from "zod";
import { duration, size, whole } from "../config/fields.ts";
import { isTimeZone, mistakeInCron } from "../../core/schedule.ts";

/** Five cron fields; null once parsed for `off`. */
const cronText = z
  .string(
    'must be five cron fields in quotes, such as "0 4 1 * *", or off to run it only on demand',
  )
  .transform((text, context) => {
    if (text === "off") {
      return null;
    }
    const mistake = mistakeInCron(text);
    if (mistake === undefined) {
      return text;
    }
    context.addIssue({ code: "custom", message: `"${text}" ${mistake}` });
    return z.NEVER;
  });

/** Settings of every job, with the defaults of the job. `more` are its additional settings. */
function jobSettings<const More extends z.ZodRawShape>(
  defaults: {
    /** Five cron fields, or `off`. */
    readonly cron: string;
    readonly timeout: string;
    readonly retries: number;
  },
  more: More,
) {
  return z
    .strictObject({
      cron: cronText.prefault(defaults.cron),
      timeout: duration.prefault(defaults.timeout),
      retries: whole(0, 10).default(defaults.retries),
      ...more,
    })
    .prefault({} as never);
}

const keep = z
  .strictObject({
    daily: whole(1, 366).default(7),
    weekly: whole(0, 520).default(4),
    monthly: whole(0, 240).default(12),
  })
  .prefault({});
export type KeepRule = Readonly<z.output<typeof keep>>;

/** How many backups are kept, for jobs that create backups. */
const keepSetting = { keep };

const directory = z.string("must be a directory").min(1, "must be a directory");

/** `jobs:` of the configuration: settings of each job, with `_` for `-` in its name. */
export const jobsSchema = z
  .strictObject({
    time_zone: z
      .string("must be a time zone such as Europe/Berlin")
      .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
      .default(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
    postgres_backup: jobSettings(
      { cron: "0 3 * * *", timeout: "4h", retries: 3 },
      keepSetting,
    ),
    backup_copy: jobSettings(
      { cron: "0 5 * * *", timeout: "8h", retries: 4 },
      { accept_at_most: size.prefault("50GB") },
    ),
    offsite_copy: jobSettings(
      { cron: "30 5 * * *", timeout: "12h", retries: 4 },
      {},
    ),
    offsite_drill: jobSettings(
      { cron: "0 9 2 * *", timeout: "12h", retries: 1 },
      {},
    ),
    notes_offsite_drill: jobSettings(
      { cron: "0 9 3 * *", timeout: "12h", retries: 1 },
      {},
    ),
    restore_drill: jobSettings(
      { cron: "0 6 * * 0", timeout: "4h", retries: 1 },
      {},
    ),
    compaction: jobSettings(
      { cron: "0 4 1 * *", timeout: "6h", retries: 1 },
      {
        least: size.prefault("64MB"),
        least_percent: whole(0, 100).default(20),
        most_conflicts: whole(0, 100_000).default(50),
        rest: duration.prefault("24h"),
      },
    ),
    notes_backup: jobSettings(
      { cron: "30 3 * * *", timeout: "4h", retries: 3 },
      keepSetting,
    ),
    notes_drill: jobSettings(
      { cron: "30 6 * * 0", timeout: "4h", retries: 1 },
      {},
    ),
    notes_conflicts: jobSettings(
      { cron: "45 7 * * *", timeout: "30m", retries: 2 },
      {},
    ),
    notes_devices: jobSettings(
      { cron: "50 7 * * *", timeout: "30m", retries: 2 },
      {},
    ),
    ledger_check: jobSettings(
      { cron: "30 4 * * *", timeout: "1h", retries: 2 },
      {},
    ),
    retention: jobSettings(
      { cron: "15 2 * * *", timeout: "30m", retries: 1 },
      {
        raw: duration.prefault("7d"),
        hourly: duration.prefault("400d"),
        reports: duration.prefault("800d"),
      },
    ),
    spend_report: jobSettings(
      { cron: "0 8 1 * *", timeout: "30m", retries: 3 },
      {
        period: z
          .enum(["day", "week", "month"], "must be day, week or month")
          .default("month"),
        to: directory.default("reports/"),
      },
    ),
    health_report: jobSettings(
      { cron: "0 8 * * 1", timeout: "30m", retries: 3 },
      {
        period: z
          .enum(["day", "week", "month"], "must be day, week or month")
          .default("week"),
        to: directory.default("reports/"),
      },
    ),
  })
  .prefault({});

/** The schedule of a job from its settings. */
export function scheduleOf(settings: {
  readonly cron: string | null;
  readonly timeout: number;
  readonly retries: number;
}) {
  const { cron, timeout, retries } = settings;
  return { cron, timeoutMs: timeout, retries };
}
