import { z } from "zod";
import { readTotals } from "../../database/totals.ts";
import type { Route } from "../../http/route.ts";
import { LIFETIME, windowAt } from "../../ledger/budget-windows.ts";
import { adminRoute } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { report } from "./day-report.ts";
import { DAY } from "./days.ts";
import { KEY_NOW, RENAMED } from "./former-keys.ts";
import { spendReport } from "./spend-report.ts";

/** GET /global/spend */
const spend = adminRoute(
  "GET /global/spend",
  {
    summary:
      "Get the spend of the whole gateway, in its budget's window and in total.",
    input: z.object({}),
    answer: z.object({
      spend: out.dollars,
      total_spend: out.dollars,
      max_budget: out.dollars.nullable(),
      budget_duration: out.text.nullable(),
      budget_reset_at: out.moment.nullable(),
    }),
  },
  async (admin) => {
    const { maxBudget, budgetDuration } = admin.gateway.config.general;
    const window = windowAt(
      budgetDuration,
      admin.now,
      admin.windowing.timeZone,
    );
    const [current, total] = await readTotals(admin.pool, [
      { entity: "proxy:", window: window.name },
      { entity: "proxy:", window: LIFETIME.name },
    ]);
    return {
      spend: current?.spend ?? 0,
      total_spend: total?.spend ?? 0,
      max_budget: maxBudget,
      budget_duration: budgetDuration,
      budget_reset_at: Number.isFinite(window.end)
        ? new Date(window.end).toISOString()
        : null,
    };
  },
);

/** What an answer has of the calls of each value. */
const CALL_SUMS = { api_requests: out.count, total_tokens: out.count };

/** The spend of each value of a column, most expensive first. */
function bySpend(column: string, as: string, spend: string, joined = "") {
  return (from: string, where: string, limit: number) =>
    `SELECT ${column} AS ${as}, sum(spend) AS ${spend}, sum(requests) AS api_requests,
        sum(prompt_tokens + completion_tokens) AS total_tokens
      FROM ${from} ${joined} ${where} AND ${column} <> '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${limit}`;
}

const logs = report(
  "GET /global/spend/logs",
  {
    summary: "Get spend by day.",
    answer: z.array(z.object({ date: out.day, spend: out.dollars })),
  },
  [],
  (from, where) =>
    `SELECT ${DAY} AS date, sum(spend) AS spend FROM ${from} ${where} GROUP BY day ORDER BY day`,
);

const keys = report(
  "GET /global/spend/keys",
  {
    summary: "List keys by spend in a period.",
    answer: z.array(
      z.object({
        api_key: out.text,
        key_alias: out.text.nullable(),
        key_name: out.text.nullable(),
        total_spend: out.dollars,
        ...CALL_SUMS,
      }),
    ),
  },
  ["api_key"],
  (from, where, limit) =>
    `SELECT d.*, k.key_alias, k.key_name FROM (${bySpend(KEY_NOW, "api_key", "total_spend", RENAMED)(from, where, limit)}) d
       LEFT JOIN keys k ON k.token = d.api_key ORDER BY total_spend DESC, api_key`,
);

const models = report(
  "GET /global/spend/models",
  {
    summary: "List models by spend in a period.",
    answer: z.array(
      z.object({ model: out.text, total_spend: out.dollars, ...CALL_SUMS }),
    ),
  },
  [],
  bySpend("model_group", "model", "total_spend"),
);

const providers = report(
  "GET /global/spend/provider",
  {
    summary: "Get the spend at each provider.",
    answer: z.array(
      z.object({ provider: out.text, spend: out.dollars, ...CALL_SUMS }),
    ),
  },
  [],
  bySpend("provider", "provider", "spend"),
);

const teams = report(
  "GET /global/spend/teams",
  {
    summary: "Get the spend of each team by day.",
    answer: z.object({
      daily_spend: z.array(
        z.object({ date: out.day }).catchall(z.union([out.dollars, out.text])),
      ),
      teams: z.array(out.text),
      total_spend_per_team: z.array(
        z.object({
          team_id: out.text,
          team: out.text,
          total_spend: out.dollars,
        }),
      ),
    }),
  },
  ["team_id"],
  (from, where) =>
    `WITH named AS MATERIALIZED (
        SELECT d.day, d.team_id, coalesce(t.team_alias, d.team_id) AS team, d.spend
          FROM (SELECT day, team_id, sum(spend) AS spend FROM ${from} ${where} AND team_id <> '' GROUP BY 1, 2) d
          LEFT JOIN teams t ON t.team_id = d.team_id)
      SELECT ${DAY} AS date, NULL AS team_id, NULL AS team, NULL AS total_spend, json_object_agg(team, spend ORDER BY team_id) AS teams
        FROM named GROUP BY day
      UNION ALL
      SELECT NULL, team_id, team, sum(spend), NULL FROM named GROUP BY team_id, team
      ORDER BY date, team_id`,
  // A row for each day and one for each team: one for each team of each day would occupy the process for seconds.
  (rows) => {
    const ofDays = rows.filter((row) => row["date"] !== null);
    const ofTeams = rows.filter((row) => row["date"] === null);
    return {
      daily_spend: ofDays.map(({ date, teams }) => ({
        date,
        ...(teams as object),
      })),
      teams: [...new Set(ofTeams.map(({ team }) => team))],
      total_spend_per_team: ofTeams.map(({ team_id, team, total_spend }) => ({
        team_id,
        team,
        total_spend,
      })),
    };
  },
);

const tags = report(
  "GET /global/spend/tags",
  {
    summary: "Get the spend of each tag.",
    answer: z.object({
      spend_per_tag: z.array(
        z.object({ name: out.text, spend: out.dollars, log_count: out.count }),
      ),
    }),
  },
  [],
  (_, where, limit) =>
    `SELECT tag AS name, sum(spend) AS spend, sum(requests) AS log_count FROM daily_tag_spend ${where}
       GROUP BY tag ORDER BY 2 DESC, 1 LIMIT ${limit}`,
  (rows) => ({ spend_per_tag: rows }),
);

export const GLOBAL_SPEND: readonly Route[] = [
  spend,
  logs,
  keys,
  models,
  providers,
  teams,
  tags,
  spendReport,
];
