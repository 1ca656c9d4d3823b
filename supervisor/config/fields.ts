import { z } from "zod";
import { parseDuration } from "../../core/duration.ts";

/** A duration in a file ("30s"); milliseconds once read. */
export const duration = z
  .string("must be a duration such as 500ms, 30s, 2m, 1h")
  .transform((text, context) => {
    const ms = parseDuration(text);
    if (ms !== undefined && ms > 0) {
      return ms;
    }
    context.addIssue({
      code: "custom",
      message: `"${text}" is no duration: write 500ms, 30s, 2m, 1h or 7d`,
    });
    return z.NEVER;
  });

export const whole = (least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}`;
  return z.number(error).int(error).min(least, error).max(most, error);
};

export const times = whole(1, 100);

export const name = z
  .string("must be a name")
  .regex(/^[a-z][a-z0-9-]*$/, "must be lower-case letters, digits and -");

export const webAddress = z.url({
  protocol: /^https?$/,
  error: "must be an http(s) address",
});

/** A number, also one that a variable gave as text. */
export const port = z.preprocess(
  (value) =>
    typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value,
  whole(1, 65_535),
);

const unitInBytes: Readonly<Record<string, number>> = {
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

/** A size in a file ("20GB"); bytes once read. */
export const size = z
  .string("must be a size such as 500MB or 20GB")
  .transform((text, context) => {
    const [, amount, unit = ""] =
      /^(\d+(?:\.\d+)?) ?([MGT]B)$/.exec(text.trim()) ?? [];
    const factor = unitInBytes[unit];
    if (factor !== undefined && Number(amount) > 0) {
      return Math.round(Number(amount) * factor);
    }
    context.addIssue({
      code: "custom",
      message: `"${text}" is no size: write 500MB, 20GB or 1TB`,
    });
    return z.NEVER;
  });
