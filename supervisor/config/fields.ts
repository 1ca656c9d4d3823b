import { z } from "zod";
import { parseDuration } from "../../core/duration.ts";

const DURATION = "must be a duration such as 500ms, 30s, 2m, 1h or 7d";

/** A duration in a file ("30s"); milliseconds once read. */
export const duration = z.string(DURATION).transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) {
    return ms;
  }
  context.addIssue({ code: "custom", message: DURATION });
  return z.NEVER;
});

export const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.number(error).int(error).min(min, error).max(max, error);
};

export const times = whole(1, 100);

export const name = z
  .string("must be a name")
  .regex(/^[a-z][a-z0-9-]*$/, "must be lower-case letters, digits and -");

export const webAddress = z.url({
  protocol: /^https?$/,
  error: "must be an http(s) address",
});

/** A port, as a number or as the text of a variable. */
export const port = z.preprocess(
  (value) =>
    typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value,
  whole(1, 65_535),
);

const UNIT_BYTES: Readonly<Record<string, number>> = {
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

const SIZE = "must be a size such as 500MB, 20GB or 1TB";

/** A size in a file ("20GB"); bytes once read. */
export const size = z.string(SIZE).transform((text, context) => {
  const [, amount, unit = ""] =
    /^(\d+(?:\.\d+)?) ?([MGT]B)$/.exec(text.trim()) ?? [];
  const factor = UNIT_BYTES[unit];
  if (factor !== undefined && Number(amount) > 0) {
    return Math.round(Number(amount) * factor);
  }
  context.addIssue({ code: "custom", message: SIZE });
  return z.NEVER;
});
