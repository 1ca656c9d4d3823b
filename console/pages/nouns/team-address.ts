import type { TeamRow } from "../../../supervisor/gateway/rows.ts";
import { readable } from "../../../core/words.ts";
import { addressInQuery } from "./noun-address.ts";

export const TEAM_ADDRESS = addressInQuery("/teams", "team");

export function teamTitle(
  team: Pick<TeamRow, "team_id" | "team_alias">,
): string {
  return readable(team.team_alias ?? team.team_id);
}
