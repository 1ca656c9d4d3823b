import { DAY_MS } from "../../../core/duration.ts";
import type { Admin } from "../admin-route.ts";
import { instantOf } from "../../ledger/wall-time.ts";
import { tokenOf } from "../key-tokens.ts";
import { name } from "../kinds/values.ts";
import { applyFilters, type Conditions, type Filters } from "../paging.ts";
import { ofKey } from "./former-keys.ts";

/** Whose rows of the ledger, or which one. */
export const namedInLog = {
  api_key: name.optional(),
  user_id: name.optional(),
  team_id: name.optional(),
  end_user: name.optional(),
  request_id: name.optional(),
} as const;

const NAMED: Filters = {
  user_id: "l.user_id = ?",
  team_id: "l.team_id = ?",
  end_user: "l.end_user = ?",
  // The id of the call, or the provider's id of its answer.
  request_id: "(l.request_id = ? OR l.response_id = ?)",
};

/** Keeps the rows of `spend_log l` that the query names; a key by its text or hash. */
export async function restrictToNamed(
  { pool }: Admin,
  filter: Conditions,
  input: Readonly<Partial<Record<keyof typeof namedInLog, string | undefined>>>,
): Promise<void> {
  if (input.api_key !== undefined) {
    await ofKey(pool, filter, "l.api_key", tokenOf(input.api_key));
  }
  applyFilters(filter, NAMED, input);
}

/** The first moment of a day in the time zone. */
export function startOfDay(day: string, timeZone: string): string {
  return midnight(Date.parse(`${day}T00:00:00Z`), timeZone);
}

/** The first moment after a day in the time zone. */
export function endOfDay(day: string, timeZone: string): string {
  return midnight(Date.parse(`${day}T00:00:00Z`) + DAY_MS, timeZone);
}

function midnight(wall: number, timeZone: string): string {
  return new Date(instantOf(wall, timeZone)).toISOString();
}
