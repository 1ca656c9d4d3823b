import type { Row } from "../database/rows.ts";

/**
 * The fields of a team to be set: as in LiteLLM, the first budget for its members resets with the team's own, unless the request says
 * when. `before` is the row of an existing team.
 */
export function withMemberResets(fields: Row, before: Row = {}): Row {
  const isFirst =
    fields["team_member_budget"] != null &&
    (before["team_member_budget"] ?? null) === null &&
    (before["team_member_budget_duration"] ?? null) === null;
  if (!isFirst || fields["team_member_budget_duration"] !== undefined) {
    return fields;
  }
  const { budget_duration: resets = before["budget_duration"] } = fields;
  return { ...fields, team_member_budget_duration: resets };
}
