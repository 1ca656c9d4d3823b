import type { Client } from "../database/pool.ts";
import type { Windowing } from "../database/totals.ts";
import {
  importKeys,
  importReplacedKeys,
  reportAbsentKeys,
} from "./import-keys.ts";
import {
  importBudgets,
  importEndUsersAndTags,
  importOrganizationMembers,
  importOrganizations,
  importUsers,
} from "./import-people.ts";
import { importTeams } from "./import-teams.ts";
import { listOthers } from "./list-others.ts";
import type { Notes } from "./import-notes.ts";
import type { ImportContext } from "./import-row.ts";
import type { Source } from "./source.ts";
import { importSpends, importedBefore } from "./spends.ts";

/** What is imported, and where its result is noted. */
export interface ImportTask {
  readonly source: Source;
  readonly notes: Notes;
  readonly windowing: Windowing;
  /** Ms since the epoch. */
  readonly now: number;
}

/**
 * Imports all payers, in the caller's transaction. Existing rows change only by what they spent at
 * LiteLLM since the previous run: a second run without such spend changes nothing.
 */
export async function importPayers(
  client: Client,
  { source, notes, windowing, now }: ImportTask,
): Promise<{ readonly payers: number; readonly dollars: number }> {
  const context: ImportContext = {
    client,
    source,
    notes,
    before: await importedBefore(client),
    spends: [],
  };
  await importBudgets(context);
  await importOrganizations(context);
  await importUsers(context);
  await importOrganizationMembers(context);
  await importTeams(context);
  await importEndUsersAndTags(context);
  await importKeys(context);
  await importReplacedKeys(context, now);
  await reportAbsentKeys(context);
  await listOthers(source, notes);
  return importSpends(client, context.spends, windowing, now);
}
