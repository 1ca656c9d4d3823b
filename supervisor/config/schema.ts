import { z } from "zod";
import { notifySchema, peerSchema, watchdogSchema } from "../alerts/config.ts";
import { jobsSchema } from "../jobs/config.ts";
import { duration, name, times, whole } from "./fields.ts";

const healRule = z.strictObject({
  restart: name,
  max: times.default(3),
  per: duration.prefault("1h"),
  cooldown: duration.prefault("60s"),
  grace: duration.prefault("30s"),
});

const everyCheck = {
  name,
  every: duration.prefault("30s"),
  timeout: duration.prefault("10s"),
  fail_after: times.default(3),
  recover_after: times.default(2),
  depends_on: z.array(name).default([]),
  heal: healRule.optional(),
};

const check = z.discriminatedUnion("kind", [
  z.strictObject({
    ...everyCheck,
    kind: z.literal("http"),
    url: z.url({ protocol: /^https?$/, error: "must be an http(s) address" }),
    expect: z
      .strictObject({
        status: whole(100, 599).default(200),
        within: duration.optional(),
        json: z
          .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
          .optional(),
      })
      .prefault({}),
  }),
  z.strictObject({
    ...everyCheck,
    kind: z.literal("tcp"),
    host: z.string().min(1).default("127.0.0.1"),
    port: whole(1, 65_535),
  }),
  z.strictObject({
    ...everyCheck,
    kind: z.literal("postgres"),
    url: z.url({
      protocol: /^postgres(ql)?$/,
      error: "must be a postgres:// address",
    }),
    expect: z
      .strictObject({
        connections_below_percent: whole(1, 100).default(90),
      })
      .prefault({}),
  }),
]);

const restarts = z.strictObject({
  max: times.default(10),
  per: duration.prefault("10m"),
  first_wait: duration.prefault("200ms"),
  longest_wait: duration.prefault("30s"),
});

export const configSchema = z.strictObject({
  restarts: restarts.prefault({}),
  checks: z.array(check).default([]),
  jobs: jobsSchema,
  notify: notifySchema,
  watchdog: watchdogSchema,
  peer: peerSchema,
});

export const checkKinds: readonly string[] = check.options.map(
  ({ shape }) => shape.kind.value,
);

/** config/supervisor.yaml as read; durations in milliseconds. */
export type SupervisorConfig = Readonly<z.output<typeof configSchema>>;
export type Check = SupervisorConfig["checks"][number];
export type HealRule = Readonly<z.output<typeof healRule>>;
