import type { Attention } from "../status.ts";
import { findConflicts } from "./conflicts.ts";
import type { Couch } from "./couch.ts";
import { openDatabase } from "./database.ts";
import type { NotesState } from "./notes-state.ts";
import { MOST_CONFLICTS } from "./report-jobs.ts";

/** A search reads the whole vault, so one that changes all the time is searched this seldom. */
const SEARCH_EVERY_MS = 600_000;

interface Searched {
  /** The vault as it was. */
  readonly seq: string;
  readonly at: number;
  readonly more: boolean;
}

/** The vaults with notes that have more than one version, looked for where something changed; nobody is notified of these. */
export function openPendingConflicts(
  couch: Couch,
  state: NotesState,
  now: () => number,
): (
  vaults: readonly string[],
  quiet: ReadonlySet<string>,
) => Promise<readonly Attention[]> {
  const searched = new Map<string, Searched>();

  async function search(vault: string): Promise<void> {
    const database = openDatabase(couch, vault);
    const info = await database.info();
    if (info === undefined) {
      return;
    }
    const before = searched.get(vault);
    const at = now();
    // What is open may just have been resolved.
    const isOpen = Object.keys(state.vault(vault).conflicts).length > 0;
    const isRecent =
      before !== undefined && Math.abs(at - before.at) < SEARCH_EVERY_MS;
    if (before?.seq === info.update_seq || (isRecent && !isOpen)) {
      return;
    }
    const { more } = await findConflicts(database, state, at, MOST_CONFLICTS);
    searched.set(vault, { seq: info.update_seq, at, more });
  }

  return async (vaults, quiet) => {
    const found: Attention[] = [];
    for (const vault of vaults) {
      if (!quiet.has(vault)) {
        await search(vault);
      }
      const times = Object.values(state.vault(vault).conflicts);
      if (times.length === 0) {
        continue;
      }
      const count = `${searched.get(vault)?.more === true ? "more than " : ""}${times.length}`;
      found.push({
        name: `vault ${vault}`,
        level: "warning",
        text: `vault ${vault} has ${count} ${times.length === 1 ? "note" : "notes"} in conflict`,
        since: Math.min(...times),
        command: `hearth notes conflicts ${vault}`,
        output: null,
        tried: [],
        silenced: null,
      });
    }
    return found;
  };
}
