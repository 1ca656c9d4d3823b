import { z } from "zod";
import { out } from "../kinds/out.ts";
import { METRIC_NAMES } from "./days.ts";

const metrics = z
  .object(
    Object.fromEntries(METRIC_NAMES.map((metric) => [metric, z.number()])),
  )
  .meta({ id: "Metrics" });

const part = z.record(
  out.text,
  z.object({
    metrics,
    metadata: z.object({ key_alias: out.text.nullable().optional() }),
  }),
);

/** Days with their sums, each also by model, provider and key. */
export const activity = z
  .object({
    results: z.array(
      z.object({
        date: out.day,
        metrics: metrics.nullable(),
        breakdown: z.object({ models: part, providers: part, api_keys: part }),
      }),
    ),
    metadata: z.object({
      ...Object.fromEntries(
        METRIC_NAMES.map((metric) => [
          `total_${metric.replace(/^total_/, "")}`,
          z.number(),
        ]),
      ),
      page: out.count,
      total_pages: out.count,
      has_more: z.boolean(),
    }),
  })
  .meta({ id: "DailyActivity" });
