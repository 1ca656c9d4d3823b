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
function jobSettings<const More extends z.ZodRawShape = Record<never, never>>(
  cron: string,
  timeout: string,
  retries: number,
  more: More = {} as More,
) {
  return z
    .strictObject({
      cron: cronText.prefault(cron),
      timeout: duration.prefault(timeout),
      retries: whole(0, 10).default(retries),
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

const reportSettings = (period: "week" | "month") => ({
  period: z
    .enum(["day", "week", "month"], "must be day, week or month")
    .default(period),
  to: directory.default("reports/"),
});

/** `jobs:` of the configuration: settings of each job, with `_` for `-` in its name. */
export const jobsSchema = z
  .strictObject({
    time_zone: z
      .string("must be a time zone such as Europe/Berlin")
      .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
      .default(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
    postgres_backup: jobSettings("0 3 * * *", "4h", 3, keepSetting),
    backup_copy: jobSettings("0 5 * * *", "8h", 4, {
      accept_at_most: size.prefault("50GB"),
    }),
    offsite_copy: jobSettings("30 5 * * *", "12h", 4),
    offsite_drill: jobSettings("0 9 2 * *", "12h", 1),
    notes_offsite_drill: jobSettings("0 9 3 * *", "12h", 1),
    restore_drill: jobSettings("0 6 * * 0", "4h", 1),
    compaction: jobSettings("0 4 1 * *", "6h", 1, {
      least: size.prefault("64MB"),
      least_percent: whole(0, 100).default(20),
      most_conflicts: whole(0, 100_000).default(50),
      rest: duration.prefault("24h"),
    }),
    notes_backup: jobSettings("30 3 * * *", "4h", 3, keepSetting),
    notes_drill: jobSettings("30 6 * * 0", "4h", 1),
    notes_conflicts: jobSettings("45 7 * * *", "30m", 2),
    notes_devices: jobSettings("50 7 * * *", "30m", 2),
    ledger_check: jobSettings("30 4 * * *", "1h", 2),
    retention: jobSettings("15 2 * * *", "30m", 1, {
      raw: duration.prefault("7d"),
      hourly: duration.prefault("400d"),
      reports: duration.prefault("800d"),
    }),
    spend_report: jobSettings("0 8 1 * *", "30m", 3, reportSettings("month")),
    health_report: jobSettings("0 8 * * 1", "30m", 3, reportSettings("week")),
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
