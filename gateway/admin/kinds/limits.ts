import { z } from "zod";
import { settable, SORTABLE } from "./field.ts";
import { out } from "./out.ts";
import {
  atOnce,
  dollars,
  perMinute,
  reference,
  resetInterval,
} from "./values.ts";

/** The limits that a tier can have. */
export const TIER_LIMITS = {
  max_budget: settable("dollars", dollars, SORTABLE),
  soft_budget: settable("dollars", dollars),
  budget_duration: settable("text", resetInterval),
  tpm_limit: settable("count", perMinute),
  rpm_limit: settable("count", perMinute),
  max_parallel_requests: settable("smallCount", atOnce),
} as const;

/** The limits of any payer: its own, else those of its tier. */
export const LIMITS = {
  ...TIER_LIMITS,
  budget_id: settable("text", reference),
} as const;

/** Budgets of models as answers show them. */
export const modelBudgetsShown = z.record(
  out.text,
  z.object({ budget_limit: out.dollars, time_period: out.text.nullish() }),
);
