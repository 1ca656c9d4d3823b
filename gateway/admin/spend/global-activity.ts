import { z } from "zod";
import type { Row } from "../../database/rows.ts";
import type { Route } from "../../http/route.ts";
import { out } from "../kinds/out.ts";
import { report } from "./day-report.ts";
import { DAY } from "./days.ts";

const activityDay = z.object({
  date: out.day,
  api_requests: out.count,
  total_tokens: out.count,
  spend: out.dollars,
  failed_requests: out.count,
});

const daily = `${DAY} AS date, sum(requests) AS api_requests, sum(prompt_tokens + completion_tokens) AS total_tokens,
  sum(spend) AS spend, sum(failed) AS failed_requests`;

function sumOf(rows: readonly Row[], column: string): number {
  return rows.reduce((sum, row) => sum + Number(row[column]), 0);
}

const activity = report(
  "GET /global/activity",
  {
    summary: "Get requests and tokens by day.",
    answer: z.object({
      daily_data: z.array(activityDay),
      sum_api_requests: out.count,
      sum_total_tokens: out.count,
    }),
  },
  [],
  (from, where) =>
    `SELECT ${daily} FROM ${from} ${where} GROUP BY day ORDER BY day`,
  (rows) => ({
    daily_data: rows,
    sum_api_requests: sumOf(rows, "api_requests"),
    sum_total_tokens: sumOf(rows, "total_tokens"),
  }),
);

const modelActivity = report(
  "GET /global/activity/model",
  {
    summary: "Get requests and tokens of each model by day.",
    answer: z.array(
      z.object({
        model: out.text,
        daily_data: z.array(activityDay),
        sum_api_requests: out.count,
        sum_total_tokens: out.count,
      }),
    ),
  },
  [],
  (from, where) =>
    `SELECT model_group AS model, ${daily} FROM ${from} ${where} AND model_group <> '' GROUP BY model_group, day ORDER BY day`,
  (rows) =>
    [...Map.groupBy(rows, (row) => row["model"])]
      .map(([model, ofModel]) => ({
        model,
        daily_data: ofModel.map(({ model: _, ...day }) => day),
        sum_api_requests: sumOf(ofModel, "api_requests"),
        sum_total_tokens: sumOf(ofModel, "total_tokens"),
      }))
      .sort((one, other) => other.sum_api_requests - one.sum_api_requests),
);

const cacheHits = report(
  "GET /global/activity/cache_hits",
  {
    summary:
      "Get the hits of the response cache by day, and what caches saved, those of providers for prompts included.",
    answer: z.object({
      daily_data: z.array(
        z.object({
          date: out.day,
          cache_hits: out.count,
          cache_misses: out.count,
          saved: out.dollars,
        }),
      ),
      sum_cache_hits: out.count,
      sum_cache_misses: out.count,
      sum_saved: out.dollars,
      hit_rate: z.number(),
    }),
  },
  [],
  (from, where) =>
    `SELECT ${DAY} AS date, sum(cache_hits) AS cache_hits, sum(requests - cache_hits) AS cache_misses, sum(saved) AS saved
       FROM ${from} ${where} GROUP BY day ORDER BY day`,
  (rows) => {
    const hits = sumOf(rows, "cache_hits");
    const misses = sumOf(rows, "cache_misses");
    return {
      daily_data: rows,
      sum_cache_hits: hits,
      sum_cache_misses: misses,
      sum_saved: sumOf(rows, "saved"),
      hit_rate: hits + misses === 0 ? 0 : hits / (hits + misses),
    };
  },
);

export const GLOBAL_ACTIVITY: readonly Route[] = [
  activity,
  modelActivity,
  cacheHits,
];
