import type { Couch } from "./couch.ts";
import { countConflicts } from "./conflicts.ts";
import { openDatabase, vaultNames } from "./database.ts";
import type { NotesState } from "./notes-state.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import type { VaultFiles } from "./vault-file.ts";

/** One vault as `hearth notes list` shows it; sizes in bytes, times in milliseconds since 1970. */
export type VaultView = {
  readonly vault: string;
  /** gone: its database is not there; closed: its access is taken away, see the seed; foreign: not made by `hearth notes add`. */
  readonly state: "open" | "closed" | "gone" | "foreign";
  /** Where devices reach it; null when its credentials are not kept here. */
  readonly url: string | null;
  readonly user: string | null;
  readonly documents: number;
  readonly fileBytes: number;
  readonly reclaimableBytes: number;
  /** At most 100. */
  readonly conflicts: number;
  /** How many security seeds were ever seen; the accepted one is kept in a second place. */
  readonly seeds: number;
  readonly compactedAt: number | null;
};

const mostCounted = 100;

/** Every vault that the store has or should have. */
export async function listVaults(parts: {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
}): Promise<readonly VaultView[]> {
  const { couch, state, escrow, files } = parts;
  const names = new Set([...(await vaultNames(couch)), ...state.known()]);
  const views: VaultView[] = [];
  for (const vault of [...names].toSorted()) {
    const database = openDatabase(couch, vault);
    const info = await database.info();
    const { member, compactedAt } = state.vault(vault);
    if (info === undefined && member === null) continue;
    const file = files.read(vault);
    const kept = escrow.read(vault);
    const bytes = info?.sizes ?? { file: 0, active: 0 };
    views.push({
      vault,
      state: stateOf(info !== undefined, kept.closed !== null, member),
      url: file?.url ?? null,
      user: file?.user ?? member,
      documents: info?.doc_count ?? 0,
      fileBytes: bytes.file,
      reclaimableBytes: Math.max(0, bytes.file - bytes.active),
      conflicts:
        info === undefined ? 0 : await countConflicts(database, mostCounted),
      seeds: kept.versions.length,
      compactedAt,
    });
  }
  return views;
}

function stateOf(
  isThere: boolean,
  isClosed: boolean,
  member: string | null,
): VaultView["state"] {
  if (!isThere) return "gone";
  if (isClosed) return "closed";
  return member === null ? "foreign" : "open";
}
