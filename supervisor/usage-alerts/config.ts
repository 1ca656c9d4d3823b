import { z } from "zod";
import { whole } from "../config/fields.ts";

const amount = z
  .number("must be an amount in dollars")
  .positive("must be an amount in dollars above 0");

/** `usage_alerts:` of the configuration. */
export const usageAlertsSchema = z
  .strictObject({
    /** Percent of a budget. */
    budgets_at: z
      .array(whole(1, 100), "must be a list of percentages")
      .default([50, 80, 100]),
    unusual_spend: z
      .strictObject({
        times: whole(2, 1000).default(3),
        /** Dollars within an hour. */
        least: amount.default(1),
      })
      .prefault({}),
    models: z
      .strictObject({
        failed_percent: whole(1, 100).default(20),
        slower: whole(2, 1000).default(3),
        least_calls: whole(1, 1_000_000).default(20),
      })
      .prefault({}),
  })
  .prefault({});
export type UsageAlertsConfig = Readonly<z.output<typeof usageAlertsSchema>>;
