import { query, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";

/** Throws 400 for access groups of a key or a team that do not exist, and keeps the others until the transaction has ended. */
export async function requireAccessGroups(
  client: Client,
  { access_group_ids: ids }: Row,
): Promise<void> {
  if (!Array.isArray(ids) || ids.length === 0) {
    return;
  }
  const found = await query<{ access_group_id: string }>(
    client,
    "SELECT access_group_id FROM access_groups WHERE access_group_id = ANY($1) FOR SHARE",
    [ids],
  );
  const known = new Set(found.map((row) => row.access_group_id));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) {
    throw new CallError(
      "invalid_request",
      `The access group ${String(unknown)} does not exist. GET /v1/access_group lists the access groups with their ids.`,
      { param: "access_group_ids" },
    );
  }
}
