import { Failure } from "../../core/failure.ts";
import { mapLimited } from "../../core/map-limited.ts";
import { NoAnswer, type Couch } from "./couch.ts";
import { backupsOf } from "./backup-format.ts";
import { countConflicts } from "./conflicts.ts";
import { Database, vaultNames } from "./database.ts";
import type { NotesState, VaultState } from "./notes-state.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import { asUnreadable, type Unreadable } from "./unreadable-vault.ts";
import type { VaultFiles } from "./vault-file.ts";

/** One vault as `hearth notes list` shows it; sizes in bytes, times in milliseconds since 1970. */
export interface VaultView {
  readonly vault: string;
  /** gone: its database is missing; closed: access is blocked, see the seed; foreign: not created by `hearth notes add`. */
  readonly state: "open" | "closed" | "gone" | "foreign" | Unreadable;
  /** Where devices reach it; null if its credentials are not stored here. */
  readonly url: string | null;
  readonly user: string | null;
  readonly documents: number;
  readonly fileBytes: number;
  readonly reclaimableBytes: number;
  /** At most 100. */
  readonly conflicts: number;
  /** How many security seeds were ever seen; the accepted one is also stored elsewhere. */
  readonly seeds: number;
  readonly compactedAt: number | null;
  /** Name of the newest backup on this machine that contains it; null if there is none. */
  readonly backup: string | null;
  /** What is wrong with its files of credentials and seeds, and what to do. */
  readonly problems: readonly string[];
}

const MAX_COUNTED = 100;

/** Vaults that are read at the same time: the embedded store opens each in a thread that loads its code. */
export const MAX_PARALLEL = 4;

interface OverviewParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** `backups/notes`. */
  readonly backups: string;
  readonly now: () => number;
}

/** Every vault that exists or should exist in the store. */
export async function listVaults(
  parts: OverviewParts,
): Promise<readonly VaultView[]> {
  const names = new Set([
    ...(await vaultNames(parts.couch)),
    ...parts.state.known(),
  ]);
  const views = await mapLimited([...names].toSorted(), MAX_PARALLEL, (vault) =>
    viewVault(parts, vault),
  );
  return views.filter((view) => view !== undefined);
}

/** One vault; undefined if none of the name exists or should exist. */
export async function viewVault(
  { couch, state, escrow, files, backups, now }: OverviewParts,
  vault: string,
): Promise<VaultView | undefined> {
  const database = new Database(couch, vault);
  const found = await database.info().catch(asUnreadable);
  const info = typeof found === "string" ? undefined : found;
  const { member, compactedAt } = state.vault(vault);
  if (found === undefined && member === null) {
    return undefined;
  }
  const problems: string[] = [];
  const file = readOr(problems, () => files.read(vault));
  const kept = readOr(problems, () => escrow.read(vault));
  const [newest] = backupsOf(backups, vault, now());
  const bytes = info?.sizes ?? { file: 0, active: 0 };
  return {
    vault,
    state:
      typeof found === "string"
        ? found
        : stateOf(info !== undefined, kept?.closed != null, member),
    url: file?.url ?? null,
    user: file?.user ?? member,
    documents: info?.doc_count ?? 0,
    fileBytes: bytes.file,
    reclaimableBytes: Math.max(0, bytes.file - bytes.active),
    conflicts:
      info === undefined ? 0 : await conflictsIn(database, state.vault(vault)),
    seeds: kept?.versions.length ?? 0,
    compactedAt,
    backup: newest?.name ?? null,
    problems,
  };
}

/** Undefined for an unreadable file, whose sentences are added to the problems. */
function readOr<T>(problems: string[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    problems.push(...error.sentences);
    return undefined;
  }
}

/** The current number; the last known one if the vault is too large to be counted in time. */
async function conflictsIn(
  database: Database,
  { conflicts }: VaultState,
): Promise<number> {
  try {
    return await countConflicts(database, MAX_COUNTED);
  } catch (error) {
    if (!(error instanceof NoAnswer)) {
      throw error;
    }
    return Math.min(MAX_COUNTED, Object.keys(conflicts).length);
  }
}

function stateOf(
  isThere: boolean,
  isClosed: boolean,
  member: string | null,
): VaultView["state"] {
  if (!isThere) {
    return "gone";
  }
  if (isClosed) {
    return "closed";
  }
  return member === null ? "foreign" : "open";
}
