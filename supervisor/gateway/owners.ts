import { z } from "zod";
import { meant } from "../../core/nearest.ts";
import { readable } from "../../core/words.ts";
import { Refusal, type AdminApi } from "./admin-api.ts";
import {
  teamPage,
  userPage,
  type ListedOrganization,
  type ListedUser,
  type TeamRow,
  type UsedKeyRow,
} from "./rows.ts";

/** Owners of keys by name: people read and type names, the gateway identifies users and teams by ids. */

type NamedUser = Pick<ListedUser, "user_id" | "user_alias" | "user_email">;
type NamedTeam = Pick<TeamRow, "team_id" | "team_alias">;

/** The user to whom the gateway books the calls and changes of the master key; LiteLLM's name for it. */
export const MASTER_USER = "default_user_id";

/** The full name, else the id, else, where the id was generated, the email address. */
export function userName({
  user_id: id,
  user_alias: alias,
  user_email: email,
}: NamedUser): string {
  return readable(alias ?? (isGenerated(id) ? (email ?? id) : id));
}

/** The name of a team's member, of whom teams know the id and the email address. */
export function memberName(
  { members_with_roles: members }: Pick<TeamRow, "members_with_roles">,
  id: string,
): string {
  const email = members.find(({ user_id }) => user_id === id)?.user_email;
  return userName({
    user_id: id,
    user_alias: null,
    user_email: email ?? null,
  });
}

/** Whether an id was generated, as for users of LiteLLM's clients. */
function isGenerated(id: string): boolean {
  return z.uuid().safeParse(id).success;
}

export function teamName(team: NamedTeam): string {
  return readable(team.team_alias ?? team.team_id);
}

export function organizationName({
  organization_id: id,
  organization_alias: alias,
}: Pick<ListedOrganization, "organization_id" | "organization_alias">): string {
  return readable(alias ?? id);
}

/** "Anna, team Kitchen"; "none" for a key without an owner. */
export function ownerNames(
  key: Pick<UsedKeyRow, "user_id" | "team_id"> &
    Partial<Pick<UsedKeyRow, "user_alias" | "user_email" | "team_alias">>,
): string {
  const { user_id, team_id, user_alias, user_email, team_alias } = key;
  const owners = [
    ...(user_id === null
      ? []
      : [
          userName({
            user_id,
            user_alias: user_alias ?? null,
            user_email: user_email ?? null,
          }),
        ]),
    ...(team_id === null
      ? []
      : [`team ${teamName({ team_id, team_alias: team_alias ?? null })}`]),
  ];
  return owners.length === 0 ? "none" : owners.join(", ");
}

/** Number of names that are suggested, and compared with a mistyped one. */
const MAX_SUGGESTIONS = 100;

export async function listUserNames(api: AdminApi): Promise<readonly string[]> {
  return (await usersNamed(api, "")).map(userName);
}

export async function listTeamNames(api: AdminApi): Promise<readonly string[]> {
  return (await listTeams(api)).map(teamName);
}

/** At most MAX_SUGGESTIONS. */
export function listTeams(api: AdminApi): Promise<readonly TeamRow[]> {
  return teamsNamed(api, "");
}

/** The id of the user with this id, e-mail address or full name; undefined if there is none. Throws a Refusal if there are several. */
export async function findUserId(
  api: AdminApi,
  name: string,
): Promise<string | undefined> {
  const users = await usersNamed(api, name);
  return onlyOne(
    "user",
    name,
    users.find(({ user_id }) => user_id === name)?.user_id,
    users
      .filter(
        ({ user_alias, user_email }) =>
          isSame(user_alias, name) || isSame(user_email, name),
      )
      .map(({ user_id }) => user_id),
  );
}

/** Whether a team, other than the one with the id `besides`, has this name: several may, as with LiteLLM. */
export async function isTeamNamed(
  api: AdminApi,
  name: string,
  besides?: unknown,
): Promise<boolean> {
  const teams = await teamsNamed(api, name);
  return teams.some(
    ({ team_alias, team_id }) =>
      isSame(team_alias, name) && team_id !== besides,
  );
}

/** The id of the team with this id or name. Throws a Refusal that names a similar one. */
export async function findTeamId(api: AdminApi, name: string): Promise<string> {
  const teams = await teamsNamed(api, name);
  const id = onlyOne(
    "team",
    name,
    teams.find(({ team_id }) => team_id === name)?.team_id,
    teams
      .filter(({ team_alias }) => isSame(team_alias, name))
      .map(({ team_id }) => team_id),
  );
  if (id !== undefined) {
    return id;
  }
  throw unknownOwner("team", name, await listTeamNames(api));
}

/** A Refusal for an unknown user or team, with a similar name and where all are listed. */
export function unknownOwner(
  noun: "user" | "team",
  name: string,
  known: readonly string[],
): Refusal {
  return new Refusal(
    `${noun} "${readable(name)}" not found${meant(name, known)}. List or create ${noun}s with \`hearth ${noun}s\` or on their page.`,
    404,
    `${noun}_id`,
  );
}

function onlyOne(
  noun: string,
  name: string,
  withId: string | undefined,
  withName: readonly string[],
): string | undefined {
  if (withId === undefined && withName.length > 1) {
    throw new Refusal(
      `${withName.length} ${noun}s are named "${readable(name)}": use the id of one, ${withName.map(readable).join(" or ")}.`,
      400,
      `${noun}_id`,
    );
  }
  return withId ?? withName[0];
}

function isSame(known: string | null, name: string): boolean {
  return known?.toLowerCase() === name.toLowerCase();
}

/** Those with this id, e-mail address or full name; all for "". A search would find parts of names, too: more than a page has. */
async function usersNamed(
  api: AdminApi,
  name: string,
): Promise<readonly ListedUser[]> {
  const path = `/user/list?${firstPage(name)}`;
  return userPage.parse(await api.ask("GET", path)).users;
}

async function teamsNamed(
  api: AdminApi,
  name: string,
): Promise<readonly TeamRow[]> {
  const path = `/v2/team/list?${firstPage(name)}`;
  return teamPage.parse(await api.ask("GET", path)).teams;
}

function firstPage(named: string): string {
  return new URLSearchParams({
    page_size: String(MAX_SUGGESTIONS),
    ...(named === "" ? {} : { named }),
  }).toString();
}
