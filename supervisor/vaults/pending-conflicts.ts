import type { Attention } from "../status.ts";
import { findConflicts } from "./conflicts.ts";
import type { Couch } from "./couch.ts";
import { Database } from "./database.ts";
import type { NotesState } from "./notes-state.ts";
import { MAX_CONFLICTS } from "./report-jobs.ts";

/** A search reads the whole vault, so a vault that changes all the time is searched only this often. */
const SEARCH_EVERY_MS = 600_000;

interface Searched {
  /** The vault's state at the time of the search. */
  readonly seq: string;
  readonly at: number;
  readonly more: boolean;
}

/** The vaults with conflicted notes, searched after changes; they are displayed without notifications. */
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
    const database = new Database(couch, vault);
    const info = await database.info();
    if (info === undefined) {
      return;
    }
    const before = searched.get(vault);
    const at = now();
    // An open conflict may just have been resolved.
    const isOpen = Object.keys(state.vault(vault).conflicts).length > 0;
    const isRecent =
      before !== undefined && Math.abs(at - before.at) < SEARCH_EVERY_MS;
    if (before?.seq === info.update_seq || (isRecent && !isOpen)) {
      return;
    }
    const { more } = await findConflicts(database, state, at, MAX_CONFLICTS);
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
        about: { topic: "vault", id: vault },
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
