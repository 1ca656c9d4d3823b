import { z } from "zod";
import { duration, name, times } from "../../config/fields.ts";

const healRule = z.strictObject({
  restart: name,
  max: times.default(3),
  per: duration.prefault("1h"),
  cooldown: duration.prefault("60s"),
  grace: duration.prefault("30s"),
  drain: duration.prefault("150s"),
});

/** Restart `restart` when the check is down: at most `max` times in `per`. Durations in milliseconds. */
export type HealRule = Readonly<z.output<typeof healRule>>;

interface Rhythm {
  readonly every?: string;
  readonly fail_after?: number;
  readonly recover_after?: number;
}

/** Settings of every kind of check, with the default interval of the kind. */
export function everyCheck({
  every = "30s",
  fail_after = 3,
  recover_after = 2,
}: Rhythm = {}) {
  return {
    name,
    every: duration.prefault(every),
    timeout: duration.prefault("10s"),
    fail_after: times.default(fail_after),
    recover_after: times.default(recover_after),
    depends_on: z.array(name).default([]),
    only_if: z.string().optional(),
    service: name.optional(),
    heal: healRule.optional(),
  };
}
