import {
  findTeamId,
  findUserId,
  listTeamNames,
  listUserNames,
  teamName,
  userName,
} from "../../../supervisor/gateway/owners.ts";
import { usedKeyRow } from "../../../supervisor/gateway/rows.ts";
import type { NounField } from "./noun-fields.ts";

type ByName = Pick<NounField, "suggestions" | "named">;

const owners = usedKeyRow
  .pick({
    user_id: true,
    user_alias: true,
    user_email: true,
    team_id: true,
    team_alias: true,
  })
  .partial();

/** A user by id, e-mail address or full name; an unknown one stays as typed, and the gateway creates it. */
export const USER_BY_NAME: ByName = {
  suggestions: ({ api }) => listUserNames(api),
  named: {
    nameIn: (row) => {
      const {
        user_id,
        user_alias = null,
        user_email = null,
      } = owners.parse(row);
      return typeof user_id === "string"
        ? userName({ user_id, user_alias, user_email })
        : "";
    },
    idOf: async ({ api }, name) => (await findUserId(api, name)) ?? name,
  },
};

/** A team by id or name. */
export const TEAM_BY_NAME: ByName = {
  suggestions: ({ api }) => listTeamNames(api),
  named: {
    nameIn: (row) => {
      const { team_id, team_alias = null } = owners.parse(row);
      return typeof team_id === "string"
        ? teamName({ team_id, team_alias })
        : "";
    },
    idOf: ({ api }, name) => findTeamId(api, name),
  },
};
