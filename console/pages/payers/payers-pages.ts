import type { FastifyInstance } from "fastify";
import type { Environment } from "../../../core/environment.ts";
import { registerKeyForms } from "../keys/key-forms.ts";
import { registerKeyPage } from "../keys/key-page.ts";
import { registerKeysPage } from "../keys/keys-page.ts";
import { registerMembersPages } from "../people/members-page.ts";
import { registerTeamForms } from "../people/team-forms.ts";
import { registerTeamsPages } from "../people/teams-page.ts";
import { registerUserForms } from "../people/user-forms.ts";
import { registerUsersPages } from "../people/users-page.ts";
import { openPayersConsole } from "./console.ts";

/** The pages of everybody who pays: keys, users, teams. `timeZone` is an IANA name. */
export function registerPayersPages(
  server: FastifyInstance,
  env: Environment,
  timeZone: string,
): void {
  const payers = openPayersConsole(env, timeZone);
  registerKeysPage(server, payers);
  registerKeyPage(server, payers);
  registerKeyForms(server, payers);
  registerUsersPages(server, payers);
  registerUserForms(server, payers);
  registerTeamsPages(server, payers);
  registerTeamForms(server, payers);
  registerMembersPages(server, payers);
}
