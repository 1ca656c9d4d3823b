import { BUDGET } from "../admin/kinds/budget.ts";
import { KEY } from "../admin/kinds/key.ts";
import { ORGANIZATION } from "../admin/kinds/organization.ts";
import { TEAM } from "../admin/kinds/team.ts";
import { query } from "../database/pool.ts";
import { insertRow, type Row } from "../database/rows.ts";
import { keyOf, textOf } from "./convert.ts";
import {
  ACTOR,
  type ImportContext,
  dollarsOf,
  idsOf,
  importRow,
  withKnownTier,
} from "./import-row.ts";

export async function importKeys(context: ImportContext): Promise<void> {
  const { client, source, notes } = context;
  const tiers = await idsOf(client, BUDGET);
  const teams = await idsOf(client, TEAM);
  const organizations = await idsOf(client, ORGANIZATION);
  const aliases = new Set(
    (
      await query<{ key_alias: string }>(
        client,
        "SELECT key_alias FROM keys WHERE key_alias IS NOT NULL",
      )
    ).map((row) => row.key_alias),
  );
  const known = await idsOf(client, KEY);
  const rotated = new Map(
    (
      await query<{ old_token: string; token: string }>(
        client,
        "SELECT old_token, token FROM rotated_keys",
      )
    ).map((row) => [row.old_token, row.token]),
  );
  for (const given of await source.rows("keys")) {
    const read = keyOf(given, notes);
    const name = nameOf(given);
    const why =
      "why" in read ? read.why : missingOwner(read.row, teams, organizations);
    if ("why" in read || why !== null) {
      notes.left("keys", name, why ?? "");
      continue;
    }
    const token = String(read.row["token"]);
    const successor = rotated.get(token);
    if (successor !== undefined) {
      notes.count("keys", "known");
      context.spends.push({
        name: `${KEY.entity}:${token}`,
        entity: `${KEY.entity}:${successor}`,
        dollars: dollarsOf(given["spend"]),
        isNew: false,
      });
      continue;
    }
    let row = withKnownTier(context, tiers, "keys", name, read.row);
    const alias = textOf(row["key_alias"]);
    if (!known.has(token) && alias !== null) {
      if (aliases.has(alias)) {
        notes.changed(
          "keys",
          name,
          "its alias is already taken: imported without an alias",
        );
        row = { ...row, key_alias: null };
      }
      aliases.add(alias);
    }
    await importRow(context, KEY, "keys", row, given["spend"]);
  }
}

function nameOf(key: Row): string {
  const shown = textOf(key["key_name"]) ?? "sk-...";
  const alias = textOf(key["key_alias"]);
  return alias === null ? shown : `${alias} (${shown})`;
}

/** A key without its team or organization could do more than before. */
function missingOwner(
  row: Row,
  teams: ReadonlySet<string>,
  organizations: ReadonlySet<string>,
): string | null {
  const team = textOf(row["team_id"]);
  const organization = textOf(row["organization_id"]);
  if (team !== null && !teams.has(team)) {
    return "its team no longer exists";
  }
  if (organization !== null && !organizations.has(organization)) {
    return "its organization no longer exists";
  }
  return null;
}

/** Keys that were rotated and still work for a while. */
export async function importReplacedKeys(
  context: ImportContext,
  now: number,
): Promise<void> {
  const { client, source, notes } = context;
  const keys = await idsOf(client, KEY);
  for (const row of await source.rows("replacedKeys")) {
    const until = row["revoke_at"] as Date;
    const token = String(row["active_token_id"]);
    if (until.getTime() <= now || !keys.has(token)) {
      notes.left(
        "replaced keys",
        `sk-... until ${until.toISOString()}`,
        "expired, or the new key no longer exists",
      );
      continue;
    }
    const made = await insertRow(
      client,
      "rotated_keys",
      { old_token: row["token"], token, valid_until: until },
      "ON CONFLICT DO NOTHING",
    );
    notes.count("replaced keys", made === null ? "known" : "brought");
  }
}

/** Lists keys of earlier runs that LiteLLM has deleted or replaced since: here they stay valid. */
export async function reportAbsentKeys({
  client,
  source,
  notes,
}: ImportContext): Promise<void> {
  const present = new Set(
    (await source.rows("keys")).map(({ token }) => token),
  );
  const imported = await query<Row>(
    client,
    `SELECT token, key_alias, key_name FROM keys
       WHERE created_by = $1 AND NOT blocked AND (expires IS NULL OR expires > now())
         AND NOT EXISTS (SELECT FROM rotated_keys WHERE rotated_keys.token = keys.token)`,
    [ACTOR],
  );
  for (const key of imported.filter(({ token }) => !present.has(token))) {
    notes.changed(
      "keys",
      nameOf(key),
      "no longer in LiteLLM's database, but valid here: delete it with POST /key/delete if LiteLLM deleted or replaced it",
    );
  }
}
