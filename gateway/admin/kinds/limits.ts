import { z } from "zod";
import {
  optionalCount,
  optionalDollars,
  optionalText,
  SORTABLE,
} from "./field.ts";
import { out } from "./out.ts";
import { atOnce, dollars, duration, name, perMinute } from "./values.ts";

/** The limits that a tier can have. */
export const TIER_LIMITS = {
  max_budget: optionalDollars(dollars, SORTABLE),
  soft_budget: optionalDollars(dollars),
  budget_duration: optionalText(duration),
  tpm_limit: optionalCount(perMinute),
  rpm_limit: optionalCount(perMinute),
  max_parallel_requests: optionalCount(atOnce, "integer"),
} as const;

/** The limits of any payer: its own, else those of its tier. */
export const LIMITS = {
  ...TIER_LIMITS,
  budget_id: optionalText(name),
} as const;

/** Budgets of models as answers show them. */
export const modelBudgetsShown = z.record(
  out.text,
  z.object({ budget_limit: out.dollars, time_period: out.text.nullish() }),
);
