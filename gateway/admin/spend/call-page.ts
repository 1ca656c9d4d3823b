import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { CallError } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { name } from "../kinds/values.ts";
import { conditions } from "../paging.ts";
import { costLinesOf, costOfCall } from "./call-cost.ts";
import { pathOf, pathOfCall } from "./call-path.ts";
import { keepReachableSpend } from "./former-keys.ts";
import { spendLogRow } from "./log-answer.ts";
import { readCall } from "./log-rows.ts";
import { readPrompt } from "./prompt-views.ts";

const named = z.object({
  request_id: name.meta({
    description: "The id of the call, or the provider's id of its answer.",
  }),
});

const ms = out.count.nullable();

/** GET /spend/calls/:request_id: one call in full, without its prompt and answer. */
const call = adminRoute(
  "GET /spend/calls/:request_id",
  {
    summary:
      "Get one call within reach: its path, its times and what its cost is the sum of.",
    input: named,
    answer: spendLogRow
      .extend({
        user_alias: out.text.nullable(),
        team_alias: out.text.nullable(),
        times: z.object({
          waited_ms: ms.meta({
            description: "Waiting for providers, until the end of the answer.",
          }),
          first_token_ms: ms,
          overhead_ms: ms.meta({ description: "All other time." }),
          tokens_per_second: z.number().nullable(),
        }),
        cost: costOfCall,
        path: pathOfCall,
        prompt_is_stored: z.boolean(),
      })
      .meta({ id: "SpentCall" }),
  },
  async (admin, { request_id: id }) => {
    const row = await findCall(admin, id);
    const {
      waited_ms: waitedMs,
      exact_spend: exact,
      prompt_is_stored: isStored,
      user_alias: user,
      team_alias: team,
      ...spent
    } = row;
    const [lines, path] = await Promise.all([
      costLinesOf(admin, row),
      pathOf(admin, row),
    ]);
    return {
      ...spent,
      user_alias: user,
      team_alias: team,
      times: timesOf(row, waitedMs as number | null),
      cost: { ...lines, total: exact },
      path,
      prompt_is_stored: isStored,
    };
  },
);

/** GET /spend/calls/:request_id/prompt: each answer is in the audit log. */
const prompt = adminRoute(
  "GET /spend/calls/:request_id/prompt",
  {
    summary:
      "Get the stored headers, prompt and answer of a call within reach, without API keys. The audit log records each view.",
    input: named,
    answer: z.object({
      request_id: out.text,
      headers: z.record(out.text, out.text),
      messages: z.unknown(),
      response: z.unknown(),
    }),
  },
  async (admin, { request_id: id }) => {
    const { request_id: found } = await findCall(admin, id);
    const stored = await readPrompt(admin, String(found));
    if (stored === null) {
      throw new CallError(
        "unknown_object",
        "The prompt of this call is not stored: set `store_prompts` on its key, or `store_prompts_in_spend_logs`, before the next call.",
      );
    }
    return stored;
  },
);

async function findCall(admin: Admin, id: string): Promise<Row> {
  const filter = conditions();
  await keepReachableSpend(admin, filter, "l.");
  filter.and("(l.request_id = ? OR l.response_id = ?)", id);
  const row = await readCall(admin, filter);
  if (row === null) {
    await rejectOutOfReach(admin, id);
    throw new CallError(
      "unknown_object",
      `No call ${JSON.stringify(id)} is in the ledger. Calls appear within a second of their end; rejected calls are in GET /refusals instead.`,
      { param: "request_id" },
    );
  }
  return row;
}

/** Throws 403 for a call of another owner. */
async function rejectOutOfReach(admin: Admin, id: string): Promise<void> {
  const [row] = await query<Readonly<Record<string, string | null>>>(
    admin.pool,
    "SELECT api_key, user_id, team_id, organization_id FROM spend_log WHERE request_id = $1 OR response_id = $1 LIMIT 1",
    [id],
  );
  if (row !== undefined) {
    admin.requireReach({
      what: `call ${id}`,
      token: row["api_key"] ?? null,
      userId: row["user_id"] ?? null,
      teamId: row["team_id"] ?? null,
      organizationId: row["organization_id"] ?? null,
    });
  }
}

function timesOf(row: Row, waitedMs: number | null) {
  const startedAt = timeOf(row["startTime"]) ?? 0;
  const endedAt = timeOf(row["endTime"]) ?? startedAt;
  const firstAt = timeOf(row["completionStartTime"]);
  const tokens = Number(row["completion_tokens"]);
  const generatedMs = firstAt === null ? waitedMs : endedAt - firstAt;
  return {
    waited_ms: waitedMs,
    first_token_ms: firstAt === null ? null : firstAt - startedAt,
    overhead_ms:
      waitedMs === null ? null : Math.max(0, endedAt - startedAt - waitedMs),
    tokens_per_second:
      tokens === 0 || generatedMs === null || generatedMs <= 0
        ? null
        : Math.round((tokens / generatedMs) * 10_000) / 10,
  };
}

function timeOf(value: unknown): number | null {
  return value instanceof Date ? value.getTime() : null;
}

export const CALL_PAGES: readonly Route[] = [call, prompt];
