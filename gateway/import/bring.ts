import { adjustSpend } from "../db/adjustments.ts";
import type { Client } from "../db/pool.ts";
import type { Windowing } from "../db/totals.ts";
import { bringKeys, bringReplacedKeys } from "./bring-keys.ts";
import {
  bringBudgets,
  bringEndUsersAndTags,
  bringOrganizationMembers,
  bringOrganizations,
  bringUsers,
} from "./bring-people.ts";
import { bringTeams } from "./bring-teams.ts";
import type { Notes } from "./notes.ts";
import type { Bringing } from "./put.ts";
import type { Source } from "./source.ts";

const SPENDS_AT_ONCE = 500;

/**
 * Brings everyone who pays into our tables, in the caller's transaction. What is there already stays as it is, so that a
 * second run changes nothing. Spend is brought with those that are new, by rows of the ledger.
 */
export async function bringPayers(
  client: Client,
  source: Source,
  notes: Notes,
  windowing: Windowing,
  now: number,
): Promise<{ readonly payers: number; readonly dollars: number }> {
  const bringing: Bringing = { client, source, notes, spends: [] };
  await bringBudgets(bringing);
  await bringOrganizations(bringing);
  await bringUsers(bringing);
  await bringOrganizationMembers(bringing);
  await bringTeams(bringing);
  await bringEndUsersAndTags(bringing);
  await bringKeys(bringing);
  await bringReplacedKeys(bringing, now);
  const { spends } = bringing;
  for (let at = 0; at < spends.length; at += SPENDS_AT_ONCE)
    await adjustSpend(
      client,
      spends.slice(at, at + SPENDS_AT_ONCE),
      { imported_from: "litellm" },
      windowing,
      now,
    );
  const ofKeys = spends.filter(({ entity }) => entity.startsWith("key:"));
  return {
    payers: spends.length,
    dollars: ofKeys.reduce((sum, { dollars }) => sum + Number(dollars), 0),
  };
}
