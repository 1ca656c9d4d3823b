import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import {
  findTeamId,
  findUserId,
  listUserNames,
  unknownOwner,
} from "../supervisor/gateway/owners.ts";

/** The owners of a key as the gateway names them; those that are not given stay as they are. An unknown user keeps its name. */
export async function ownersIn(
  gateway: AdminApi,
  {
    user,
    team,
  }: { readonly user?: string | undefined; readonly team?: string | undefined },
): Promise<{
  readonly user_id?: string;
  readonly team_id?: string;
}> {
  return {
    ...(user === undefined
      ? {}
      : { user_id: (await findUserId(gateway, user)) ?? user }),
    ...(team === undefined ? {} : { team_id: await findTeamId(gateway, team) }),
  };
}

/** The id of a user that must exist. Throws a Refusal that suggests a similar name. */
export async function knownUserId(
  gateway: AdminApi,
  name: string,
): Promise<string> {
  const id = await findUserId(gateway, name);
  if (id === undefined) {
    throw unknownOwner("user", name, await listUserNames(gateway));
  }
  return id;
}
