import { hashKey } from "../access/keys.ts";
import { KEY } from "../admin/kinds/key.ts";
import { TEAM } from "../admin/kinds/team.ts";
import { USER } from "../admin/kinds/user.ts";
import { change, create, type Writer } from "../admin/payers.ts";
import { SAME_EMAIL } from "../admin/user-access.ts";
import type { JwtIssuerConfig } from "../config/types.ts";
import {
  query,
  transaction,
  type Client,
  type Pool,
} from "../database/pool.ts";
import { findRows, updateRows, type Row } from "../database/rows.ts";
import { storableName } from "../ledger/names.ts";
import { denied, type JwtIdentity } from "./identity.ts";

/** The key of an identity; `isChanged` where cached rows of it are outdated. */
interface TokenKey {
  readonly hash: string;
  readonly isChanged: boolean;
}

/** Who pays for the calls of an identity. */
interface Payers {
  readonly userId: string | null;
  readonly teamId: string | null;
  readonly organizationId: string | null;
}

/**
 * Finds the key without a secret that counts and limits the calls of an identity, and creates it at the first call. Throws 403
 * for a user, team or organization that does not exist, unless the settings of the issuer create it.
 */
export async function keyOfIdentity(
  pool: Pool,
  writing: Pick<Writer, "now" | "windowing">,
  issuer: JwtIssuerConfig,
  identity: JwtIdentity,
): Promise<TokenKey> {
  const writer = { ...writing, actor: { name: `jwt:${issuer.name}` } };
  return transaction(pool, async (client) => {
    const payers = {
      userId: await findUser(writer, client, issuer, identity),
      ...(await findGroups(writer, client, issuer, identity)),
    };
    const hash = hashOf(issuer, identity, payers);
    const [known] = await findRows(client, KEY.table, { token: hash });
    const isChanged =
      known === undefined
        ? await insertKey(writer, client, issuer, identity, payers, hash)
        : await followLimits(writer, client, known, identity);
    return { hash, isChanged };
  });
}

/** Like the hash of a key's secret, but of a text that no request can send as a secret: those start with `sk-`. */
function hashOf(
  { issuer }: JwtIssuerConfig,
  { subject }: JwtIdentity,
  { userId, teamId, organizationId }: Payers,
): string {
  return hashKey(
    JSON.stringify([
      "hearth-jwt",
      issuer,
      subject,
      userId,
      teamId,
      organizationId,
    ]),
  );
}

async function findUser(
  writer: Writer,
  client: Client,
  issuer: JwtIssuerConfig,
  { userId, email }: JwtIdentity,
): Promise<string | null> {
  if (userId === null) {
    return null;
  }
  const known = await findRows(client, USER.table, { user_id: userId });
  if (known.length > 0) {
    return userId;
  }
  if (!issuer.createUsers) {
    throw denied(
      `User ${userId}, whom the token names, does not exist here. Ask the gateway's administrator to create it.`,
    );
  }
  await create(
    writer,
    client,
    USER,
    { user_id: userId, user_email: await freeEmail(client, email) },
    true,
  );
  return userId;
}

/** An address of another user stays that user's. */
async function freeEmail(
  client: Client,
  email: string | null,
): Promise<string | null> {
  const others = await query(
    client,
    `SELECT FROM users WHERE ${SAME_EMAIL.replace("?", "$1")} LIMIT 1`,
    [email],
  );
  return others.length === 0 ? email : null;
}

async function findGroups(
  writer: Writer,
  client: Client,
  issuer: JwtIssuerConfig,
  identity: JwtIdentity,
): Promise<Pick<Payers, "teamId" | "organizationId">> {
  const { organizationId } = identity;
  const team = await findTeam(writer, client, issuer, identity);
  if (organizationId === null) {
    return { teamId: team?.team_id ?? null, organizationId };
  }
  const known = await query(
    client,
    "SELECT FROM organizations WHERE organization_id = $1",
    [organizationId],
  );
  if (known.length === 0) {
    throw denied(
      `Organization ${organizationId}, which the token names, does not exist here. Ask the gateway's administrator to create it.`,
    );
  }
  if (
    team?.organization_id != null &&
    team.organization_id !== organizationId
  ) {
    throw denied(
      `Team ${team.team_id} is not of organization ${organizationId}, but the token names both. Ask the administrator of its issuer to correct it.`,
    );
  }
  return { teamId: team?.team_id ?? null, organizationId };
}

interface TeamRow {
  readonly team_id: string;
  readonly organization_id: string | null;
}

async function findTeam(
  writer: Writer,
  client: Client,
  issuer: JwtIssuerConfig,
  { teamIds }: JwtIdentity,
): Promise<TeamRow | null> {
  const [first] = teamIds;
  if (first === undefined) {
    return null;
  }
  const [known] = await query<TeamRow>(
    client,
    `SELECT team_id, organization_id FROM teams WHERE team_id = ANY($1)
       ORDER BY array_position($1::text[], team_id) LIMIT 1`,
    [teamIds],
  );
  if (known !== undefined) {
    return known;
  }
  if (!issuer.createTeams || first.includes("/")) {
    throw denied(
      `Team ${teamIds.join(", ")}, which the token names, does not exist here. Ask the gateway's administrator to create it.`,
    );
  }
  await create(writer, client, TEAM, { team_id: first }, true);
  return { team_id: first, organization_id: null };
}

async function insertKey(
  writer: Writer,
  client: Client,
  issuer: JwtIssuerConfig,
  identity: JwtIdentity,
  payers: Payers,
  hash: string,
): Promise<boolean> {
  const columns = {
    token: hash,
    key_name: `jwt:${issuer.name}`,
    user_id: payers.userId,
    team_id: payers.teamId,
    organization_id: payers.organizationId,
    blocked: await isBlocked(client, issuer, identity),
    ...withIssuer(issuer, identity),
    ...identity.limits,
  };
  const alias = aliasOf(issuer, identity, payers);
  // A name that another key already has is made different by the hash, which is the same again after a deletion.
  for (const key_alias of [alias, `${alias} #${hash.slice(0, 8)}`]) {
    const row = { ...columns, key_alias: storableName(key_alias) };
    if ((await create(writer, client, KEY, row, true)) !== null) {
      return true;
    }
    if ((await findRows(client, KEY.table, { token: hash })).length > 0) {
      return true;
    }
  }
  throw new Error(`the key ${hash} of a token could not be created`);
}

function withIssuer(
  { issuer }: JwtIssuerConfig,
  { subject, issuedAt }: JwtIdentity,
): Row {
  return {
    jwt_issuer: issuer,
    jwt_subject: subject,
    jwt_issued_at: new Date(issuedAt),
  };
}

/** As reports show it: `anna (authelia)`, `anna (authelia, team)`. */
function aliasOf(
  { name }: JwtIssuerConfig,
  { subject }: JwtIdentity,
  { userId, teamId, organizationId }: Payers,
): string {
  const groups = [teamId, teamId === null ? organizationId : null];
  const places = [name, ...groups.filter((group) => group !== null)];
  const account = (userId ?? subject).replace(/\p{C}/gu, "");
  return `${account} (${places.join(", ")})`;
}

/** An account that an admin blocked stays blocked in another team, and after its key was deleted. */
async function isBlocked(
  client: Client,
  { issuer }: JwtIssuerConfig,
  { subject }: JwtIdentity,
): Promise<boolean> {
  const [row] = await query<{ blocked: boolean }>(
    client,
    `SELECT EXISTS (SELECT FROM keys WHERE jwt_issuer = $1 AND jwt_subject = $2 AND blocked)
        OR coalesce((SELECT blocked FROM deleted_keys WHERE jwt_issuer = $1 AND jwt_subject = $2
             ORDER BY deleted_at DESC LIMIT 1), false)
          AND NOT EXISTS (SELECT FROM keys WHERE jwt_issuer = $1 AND jwt_subject = $2) AS blocked`,
    [issuer, subject],
  );
  return row?.blocked ?? false;
}

/** Sets the limits that a newer token names; the time of the newest is kept even where they are the same. */
async function followLimits(
  writer: Writer,
  client: Client,
  known: Row,
  { limits, issuedAt }: JwtIdentity,
): Promise<boolean> {
  const latest = known["jwt_issued_at"] as Date;
  const id = { token: known["token"] };
  const changes = Object.entries(limits).filter(
    ([column, value]) =>
      JSON.stringify(known[column]) !==
      JSON.stringify(value ?? EMPTY[column] ?? null),
  );
  if (issuedAt < latest.getTime()) {
    return false;
  }
  if (changes.length === 0) {
    if (issuedAt > latest.getTime() && namesLimits(limits)) {
      await updateRows(client, KEY.table, id, {
        jwt_issued_at: new Date(issuedAt),
      });
    }
    return false;
  }
  await change(writer, client, KEY, id, {
    ...Object.fromEntries(changes),
    jwt_issued_at: new Date(issuedAt),
  });
  return true;
}

function namesLimits(limits: Row): boolean {
  return Object.keys(limits).some((column) => column !== "allowed_routes");
}

/** What columns hold that are reset, if not null. */
const EMPTY: Readonly<Record<string, unknown>> = { models: [] };
