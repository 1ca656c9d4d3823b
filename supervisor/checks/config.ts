import { z } from "zod";
import { duration, name } from "../config/fields.ts";
import { isTimeZone, mistakeInCron } from "../../core/schedule.ts";
import { backupCheck } from "./kinds/backup.ts";
import { certificateCheck } from "./kinds/certificate.ts";
import { containerCheck } from "./kinds/container.ts";
import { couchdbCheck } from "./kinds/couchdb.ts";
import { diskCheck } from "./kinds/disk.ts";
import { heartbeatCheck } from "./kinds/heartbeat.ts";
import { httpCheck } from "./kinds/http.ts";
import { modelsCheck } from "./kinds/models.ts";
import { podsCheck } from "./kinds/pods.ts";
import { postgresCheck } from "./kinds/postgres.ts";
import { redisCheck } from "./kinds/redis.ts";
import { tcpCheck } from "./kinds/tcp.ts";

export const checkSchema = z.discriminatedUnion("kind", [
  httpCheck,
  tcpCheck,
  postgresCheck,
  redisCheck,
  couchdbCheck,
  containerCheck,
  podsCheck,
  diskCheck,
  certificateCheck,
  backupCheck,
  heartbeatCheck,
  modelsCheck,
]);

/** One entry of `checks:`; durations in milliseconds. */
export type Check = Readonly<z.output<typeof checkSchema>>;

const WEEKDAYS = [
  "sunday",
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
];

/** "sunday 04:00" in a file; five cron fields once parsed. */
const weekly = z
  .string('must be a day and a time, such as "sunday 04:00"')
  .transform((text, context) => {
    const [, day = "", hour = "", minute = ""] =
      /^([a-z]+) ([01]?\d|2[0-3]):([0-5]\d)$/i.exec(text.trim()) ?? [];
    const number = WEEKDAYS.indexOf(day.toLowerCase());
    if (number >= 0) {
      return `${Number(minute)} ${Number(hour)} * * ${number}`;
    }
    context.addIssue({
      code: "custom",
      message: `"${text}" must be a day and a time, such as "sunday 04:00"`,
    });
    return z.NEVER;
  });

const cron = z
  .string('must be five cron fields in quotes, such as "0 4 * * 0"')
  .superRefine((text, context) => {
    const mistake = mistakeInCron(text);
    if (mistake !== undefined) {
      context.addIssue({ code: "custom", message: `"${text}" ${mistake}` });
    }
  });

const maintenanceWindow = z
  .strictObject({
    name: name.optional(),
    checks: z.array(name).optional(),
    weekly: weekly.optional(),
    cron: cron.optional(),
    for: duration,
    time_zone: z
      .string("must be a time zone such as Europe/Berlin")
      .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
      .default(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
  })
  .refine(
    (window) => (window.weekly === undefined) !== (window.cron === undefined),
    { error: "either weekly or cron is required", path: ["cron"] },
  );

export const maintenanceSchema = z.array(maintenanceWindow).default([]);
/** Maintenance windows of the configuration. */
export type MaintenancePlan = Readonly<z.output<typeof maintenanceWindow>>;

/** `offline:` — addresses that tell whether this machine is offline. */
export const offlineSchema = z
  .strictObject({
    references: z
      .array(
        z.url({
          protocol: /^(https?|tcp)$/,
          error: "must be an http(s):// or tcp:// address",
        }),
      )
      .default([]),
    timeout: duration.prefault("5s"),
  })
  .prefault({});
