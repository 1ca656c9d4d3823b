import type { Client } from "../database/pool.ts";
import type { Windowing } from "../database/totals.ts";
import { bringKeys, bringReplacedKeys } from "./bring-keys.ts";
import {
  bringBudgets,
  bringEndUsersAndTags,
  bringOrganizationMembers,
  bringOrganizations,
  bringUsers,
} from "./bring-people.ts";
import { bringTeams } from "./bring-teams.ts";
import { listOthers } from "./list-others.ts";
import type { Notes } from "./notes.ts";
import type { Bringing } from "./put.ts";
import type { Source } from "./source.ts";
import { bringSpends, importedBefore } from "./spends.ts";

/**
 * Imports all payers, in the caller's transaction. Existing rows change only by what they spent at
 * LiteLLM since the previous run: a second run without such spend changes nothing.
 */
export async function bringPayers(
  client: Client,
  source: Source,
  notes: Notes,
  windowing: Windowing,
  now: number,
): Promise<{ readonly payers: number; readonly dollars: number }> {
  const bringing: Bringing = {
    client,
    source,
    notes,
    before: await importedBefore(client),
    spends: [],
  };
  await bringBudgets(bringing);
  await bringOrganizations(bringing);
  await bringUsers(bringing);
  await bringOrganizationMembers(bringing);
  await bringTeams(bringing);
  await bringEndUsersAndTags(bringing);
  await bringKeys(bringing);
  await bringReplacedKeys(bringing, now);
  await listOthers(source, notes);
  return bringSpends(client, bringing.spends, windowing, now);
}
