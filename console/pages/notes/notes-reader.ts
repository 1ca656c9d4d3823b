import { listBackups } from "../../../supervisor/backup/manifest.ts";
import { Failure } from "../../../core/failure.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import { readTexts } from "../../../supervisor/vaults/conflict-texts.ts";
import type { ConflictReport } from "../../../supervisor/vaults/conflicts.ts";
import { NoAnswer } from "../../../supervisor/vaults/couch.ts";
import {
  vaultChoices,
  type VaultChoices,
} from "../../../supervisor/vaults/plugin-settings.ts";
import { mapLimited } from "../../../core/map-limited.ts";
import {
  MAX_PARALLEL,
  type VaultView,
} from "../../../supervisor/vaults/overview.ts";
import {
  readableEscrow,
  type EscrowFiles,
} from "../../../supervisor/vaults/seed-escrow.ts";
import { isUnreadable } from "../../../supervisor/vaults/unreadable-vault.ts";
import type { VaultOperations } from "../../../supervisor/vaults/vault-acts.ts";
import { readableFile } from "../../../supervisor/vaults/vault-credentials.ts";
import type { VaultFiles } from "../../../supervisor/vaults/vault-file.ts";
import type { NotesFacts, VaultFacts } from "./notes-view.ts";
import {
  CONFLICTS_ON_PAGE,
  type ConflictFacts,
  type VaultPageFacts,
} from "./vault-view.ts";

interface NotesReaderOptions {
  /** With a short timeout of the store. */
  readonly acts: VaultOperations;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly jobs: JobRunner;
  readonly backups: string;
  readonly timeZone: string;
  readonly now: () => number;
}

/** Reads the data of the pages of notes. */
export class NotesReader {
  readonly usualChoices: VaultChoices = vaultChoices.parse({});
  readonly #parts: NotesReaderOptions;

  constructor(parts: NotesReaderOptions) {
    this.#parts = parts;
  }

  /** All vaults. Never throws: an unavailable store is part of the result. */
  async readAll(): Promise<Omit<NotesFacts, "addFields" | "adding">> {
    const { backups, now, timeZone } = this.#parts;
    const jobs = this.#parts.jobs.list();
    return {
      ...(await this.#vaults()),
      backups: listBackups(backups),
      backupJob: jobs.find(({ name }) => name === "notes-backup"),
      drillJob: jobs.find(({ name }) => name === "notes-drill"),
      timeZone,
      now: now(),
    };
  }

  /** One vault, with conflicts from an offset. Throws a Failure when the vault does not exist or the store is unavailable. */
  async readVault(
    vault: string,
    from: number,
  ): Promise<
    Omit<VaultPageFacts, "setupFields" | "rotateFields" | "formOpen">
  > {
    const { acts, now, timeZone } = this.#parts;
    const view = await acts.view(vault);
    return {
      ...(await this.#factsOf(view)),
      ...(hasNoContent(view)
        ? { conflicts: [], open: 0, growth: null }
        : {
            ...(await readConflicts(acts, vault, from)),
            growth: await acts.growth(vault),
          }),
      from,
      timeZone,
      now: now(),
    };
  }

  /** Whether the passphrase is not stored, so that a new Setup URI needs it. */
  asksForPassphrase(vault: string): boolean {
    const file = readableFile(this.#parts.files, vault);
    return file?.choices.e2ee === true && file.vaultPassphrase === null;
  }

  async #vaults(): Promise<Pick<NotesFacts, "vaults" | "away">> {
    try {
      const views = await this.#parts.acts.list();
      return {
        vaults: await mapLimited(views, MAX_PARALLEL, (view) =>
          this.#factsOf(view),
        ),
        away: null,
      };
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      return { vaults: [], away: error.sentences.join(" ") };
    }
  }

  async #factsOf(view: VaultView): Promise<VaultFacts> {
    const { acts, escrow } = this.#parts;
    const { vault } = view;
    return {
      view,
      roster: hasNoContent(view) ? null : await acts.devices(vault),
      closedSince: readableEscrow(escrow, vault)?.closed?.since ?? null,
      encrypted: readableFile(this.#parts.files, vault)?.choices.e2ee ?? null,
    };
  }
}

/** Conflicts with their texts, where readable; a text in `open` explains why they are unknown. */
async function readConflicts(
  acts: VaultOperations,
  vault: string,
  from: number,
): Promise<Pick<VaultPageFacts, "conflicts" | "open">> {
  let report: ConflictReport;
  try {
    report = await acts.conflicts(vault);
  } catch (error) {
    if (!(error instanceof NoAnswer)) {
      throw error;
    }
    return {
      conflicts: [],
      open: `Conflicts could not be listed in time. Run \`hearth notes conflicts ${vault}\` to wait longer.`,
    };
  }
  const database = await acts.database(vault);
  const shown = report.conflicts.slice(from, from + CONFLICTS_ON_PAGE);
  const conflicts = await Promise.all(
    shown.map(async (conflict): Promise<ConflictFacts> => ({
      ...conflict,
      texts:
        conflict.path === null
          ? []
          : await readTexts(
              database,
              conflict.document,
              conflict.versions.map(({ rev }) => rev),
            ),
    })),
  );
  return { conflicts, open: report.conflicts.length };
}

function hasNoContent({ state }: VaultView): boolean {
  return state === "gone" || isUnreadable(state);
}
