import { parseJson } from "../../../core/json.ts";
import { query, transaction } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { auditPromptViews } from "../audit.ts";

/** What is stored of a call; the view is in the audit log before it is answered. null: nothing is stored. */
export async function readPrompt(
  admin: Admin,
  requestId: string,
): Promise<Row | null> {
  return transaction(admin.pool, async (client) => {
    const [row] = await query<Row>(
      client,
      "SELECT request_id, headers, request AS messages, response FROM prompts WHERE request_id = $1",
      [requestId],
    );
    if (row === undefined) {
      return null;
    }
    await auditPromptViews(client, admin.actor.name, [requestId]);
    const { headers, ...stored } = withTexts(row);
    return { ...stored, headers: headers ?? {} };
  });
}

/** A row with `messages` and `response` as they are stored, parsed. */
export function withTexts(row: Row): Row {
  return {
    ...row,
    messages: parsed(row["messages"]),
    response: parsed(row["response"]),
  };
}

/** Parsed JSON, or the text where it was cut because of its length. */
function parsed(text: unknown): unknown {
  if (typeof text !== "string") {
    return null;
  }
  const value = parseJson(text);
  return value === undefined ? text : value;
}
