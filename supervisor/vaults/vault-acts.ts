import {
  collectChunks,
  forgetReader,
  type Collection,
  type UnusedChunks,
} from "./collection.ts";
import {
  findConflicts,
  resolveConflict,
  type ConflictReport,
  type Resolution,
  type Resolved,
} from "./conflicts.ts";
import type { Couch } from "./couch.ts";
import { Database } from "./database.ts";
import { growthOf, type Growth } from "./growth.ts";
import { openHistory, type HistorySource } from "./history-source.ts";
import type { VaultInspector, SeedAnswer } from "./vault-inspector.ts";
import type { NotesState } from "./notes-state.ts";
import { listVaults, viewVault, type VaultView } from "./overview.ts";
import type { Provisioning, Removed, SetupAnswer } from "./provisioning.ts";
import { MAX_CONFLICTS } from "./report-jobs.ts";
import { readRoster, type Roster } from "./roster.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import type { VaultSpace } from "./space.ts";
import type { Mutex } from "../../core/mutex.ts";
import type { VaultFiles } from "./vault-file.ts";
import { checkVaultName, NoSuchVault } from "./vault-names.ts";

interface VaultActParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** `backups/notes`. */
  readonly backups: string;
  readonly inspector: VaultInspector;
  readonly provisioning: Provisioning;
  readonly turns: Mutex;
  /** Bytes that are free where the store keeps its files. */
  readonly freeBytes: () => number;
  readonly now: () => number;
  /** Records a change by the operator, as one sentence. */
  readonly note: (sentence: string) => void;
}

export interface VaultGrowth {
  readonly growth: Growth;
  readonly space: VaultSpace | null;
}

/** Queries and actions of the operator on vaults, for the API and the pages. All throw Failures. */
export interface VaultOperations {
  readonly list: () => Promise<readonly VaultView[]>;
  readonly view: (vault: string) => Promise<VaultView>;
  /** The database of an existing vault. */
  readonly database: (vault: string) => Promise<Database>;
  readonly history: (vault: string) => Promise<HistorySource>;
  /** Writes earlier versions of notes, and restores those of the named chunks that were deleted meanwhile. */
  readonly restoreNotes: (
    vault: string,
    documents: readonly Readonly<Record<string, unknown>>[],
    chunks: readonly string[],
  ) => Promise<void>;
  /** Growth of a vault, and its use of space as last measured. */
  readonly growth: (vault: string) => Promise<VaultGrowth>;
  /** Counts removable chunks; with `free` removes them, after forgetting the named devices. */
  readonly collect: (
    vault: string,
    options: UnusedChunks & {
      readonly free: boolean;
      readonly forget: readonly string[];
    },
  ) => Promise<Collection>;
  readonly conflicts: (vault: string) => Promise<ConflictReport>;
  readonly devices: (vault: string) => Promise<Roster>;
  readonly resolve: (
    vault: string,
    document: string,
    resolution: Resolution,
  ) => Promise<Resolved>;
  readonly add: (
    options: Parameters<Provisioning["add"]>[0],
  ) => Promise<SetupAnswer>;
  readonly setupUri: (
    options: Parameters<Provisioning["setupUri"]>[0],
  ) => Promise<SetupAnswer>;
  readonly rotate: (
    options: Parameters<Provisioning["rotate"]>[0],
  ) => Promise<SetupAnswer>;
  readonly remove: (vault: string) => Promise<Removed>;
  readonly restoreSeed: (vault: string, accept: boolean) => Promise<SeedAnswer>;
}

export function openVaultActs(parts: VaultActParts): VaultOperations {
  return {
    list: () => listVaults(parts),
    view: async (vault) => {
      const view = await viewVault(parts, checkVaultName(vault));
      if (view === undefined) {
        throw new NoSuchVault(vault, parts.files.names());
      }
      return view;
    },
    database: (vault) => databaseOf(parts, vault),
    growth: async (vault) => {
      const { name } = await databaseOf(parts, vault);
      return {
        growth: growthOf(parts.state, name, parts.freeBytes()),
        space: parts.state.vault(name).space,
      };
    },
    devices: async (vault) => readRoster(await databaseOf(parts, vault)),
    ...noteActs(parts),
    ...accessActs(parts),
  };
}

/** The database of a vault; throws a Failure if it does not exist. */
async function databaseOf(
  { couch, files }: Pick<VaultActParts, "couch" | "files">,
  vault: string,
): Promise<Database> {
  const database = new Database(couch, checkVaultName(vault));
  if ((await database.info()) === undefined) {
    throw new NoSuchVault(vault, files.names());
  }
  return database;
}

type NoteActs = Pick<
  VaultOperations,
  "history" | "restoreNotes" | "collect" | "conflicts" | "resolve"
>;

/** Actions on the notes of a vault. */
function noteActs(parts: VaultActParts): NoteActs {
  const { couch, state, note, now } = parts;
  const history = async (vault: string) =>
    openHistory(couch, (await databaseOf(parts, vault)).name);
  return {
    history,
    restoreNotes: async (vault, documents, chunks) => {
      await (await history(vault)).write(documents, chunks);
      if (documents.length > 0) {
        note(
          `${documents.length} notes of vault ${vault} were restored from its history.`,
        );
      }
    },
    collect: async (vault, { free, forget, ...unused }) => {
      const { name } = await databaseOf(parts, vault);
      for (const id of forget) {
        await forgetReader(couch, name, id);
        note(`device or checkpoint ${id} of vault ${name} was forgotten.`);
      }
      const collection = await collectChunks(couch, name, unused, {
        free,
        now: now(),
      });
      const { count } = collection.freed;
      if (count > 0) {
        note(`${count} unused chunks of vault ${name} were removed.`);
      }
      return collection;
    },
    conflicts: async (vault) =>
      findConflicts(
        await databaseOf(parts, vault),
        state,
        now(),
        MAX_CONFLICTS,
      ),
    resolve: async (vault, document, resolution) => {
      const resolved = await resolveConflict(
        await databaseOf(parts, vault),
        document,
        resolution,
      );
      note(
        `a conflict in vault ${vault} was resolved: version ${resolved.kept} of ${resolved.document} is kept${resolved.copies.length === 0 ? "" : `, the others as ${resolved.copies.join(", ")}`}.`,
      );
      return resolved;
    },
  };
}

type AccessActs = Pick<
  VaultOperations,
  "add" | "setupUri" | "rotate" | "remove" | "restoreSeed"
>;

/** Actions on a vault as a whole and on the access of its devices. */
function accessActs({
  inspector,
  provisioning,
  turns,
  note,
}: VaultActParts): AccessActs {
  /** Runs the work in its turn and records that it was done. */
  const noting = async <T>(
    work: () => Promise<T>,
    sentence: string,
  ): Promise<T> => {
    const answer = await turns(work);
    note(sentence);
    return answer;
  };
  return {
    add: (options) =>
      noting(
        () => provisioning.add(options),
        `vault ${options.vault} was created.`,
      ),
    setupUri: (options) =>
      noting(
        () => provisioning.setupUri(options),
        `the Setup URI of vault ${options.vault} was displayed.`,
      ),
    rotate: (options) =>
      noting(
        () => provisioning.rotate(options),
        `vault ${options.vault} has a new password.`,
      ),
    remove: (vault) =>
      noting(async () => {
        const removed = await provisioning.remove(vault);
        inspector.forget(removed.vault);
        return removed;
      }, `vault ${vault} was removed.`),
    restoreSeed: async (vault, accept) => {
      const answer = await inspector.restoreSeed(checkVaultName(vault), accept);
      note(`the security seed of vault ${vault} was ${answer.did}.`);
      return answer;
    },
  };
}
