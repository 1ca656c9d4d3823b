import { z } from "zod";
import { parseDuration } from "../accounting/windows.ts";

/** Fields that several kinds of payers share, with the words a caller is told. */

export const name = z
  .string()
  .min(1, "it must not be empty")
  .max(256, "it may have at most 256 characters");
export const dollars = z.number().min(0, "a budget is at least 0 dollars");
export const perMinute = z
  .int()
  .min(0, "a limit is a whole number of at least 0");
export const models = z.array(name);
export const object = z.record(z.string(), z.unknown());

/** `30s`, `15m`, `24h`, `30d`, `1w`, `1mo`. */
export const duration = z.string().superRefine((text, context) => {
  const parsed = parseDuration(text);
  if (!parsed.ok) context.addIssue({ code: "custom", message: parsed.error });
});

/** What limits any payer. */
export const limits = {
  max_budget: dollars.nullish(),
  soft_budget: dollars.nullish(),
  budget_duration: duration.nullish(),
  budget_id: name.nullish(),
  tpm_limit: perMinute.nullish(),
  rpm_limit: perMinute.nullish(),
  max_parallel_requests: perMinute.nullish(),
} as const;

/** An alias's own budget: `{budget_limit, time_period}`. */
export const modelBudgets = z.record(
  z.string(),
  z.object({ budget_limit: dollars, time_period: duration.nullish() }),
);

export const modelRates = z.record(z.string(), perMinute);
