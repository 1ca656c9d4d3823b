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
import type { VaultView } from "../../../supervisor/vaults/overview.ts";
import type { EscrowFiles } from "../../../supervisor/vaults/seed-escrow.ts";
import type { VaultActs } from "../../../supervisor/vaults/vault-acts.ts";
import type {
  VaultFile,
  VaultFiles,
} from "../../../supervisor/vaults/vault-file.ts";
import type { NotesFacts, VaultFacts } from "./notes-view.ts";
import {
  CONFLICTS_ON_PAGE,
  type ConflictFacts,
  type VaultPageFacts,
} from "./vault-view.ts";

/** Reads what the pages show. */
export interface NotesLook {
  /** Never throws: what is away is said. */
  readonly atAll: () => Promise<Omit<NotesFacts, "addFields" | "adding">>;
  /** Throws a Failure when there is no such vault, or the store is away. */
  readonly at: (
    vault: string,
    from: number,
  ) => Promise<
    Omit<VaultPageFacts, "setupFields" | "rotateFields" | "formOpen">
  >;
  /** Its own is not kept here, so that a new Setup URI needs it typed. */
  readonly asksForPassphrase: (vault: string) => boolean;
  readonly usualChoices: VaultChoices;
}

export function openNotesLook(parts: {
  /** On a store that is not waited for long. */
  readonly acts: VaultActs;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly jobs: JobRunner;
  readonly backups: string;
  readonly timeZone: string;
  readonly now: () => number;
}): NotesLook {
  const { acts, timeZone } = parts;

  async function factsOf(view: VaultView): Promise<VaultFacts> {
    const { vault } = view;
    return {
      view,
      roster: view.state === "gone" ? null : await acts.devices(vault),
      closedSince: parts.escrow.read(vault).closed?.since ?? null,
      encrypted: fileOf(vault)?.choices.e2ee ?? null,
    };
  }

  /** Undefined when there is none, or it is broken: then rotating makes a new one. */
  function fileOf(vault: string): VaultFile | undefined {
    try {
      return parts.files.read(vault);
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      return undefined;
    }
  }

  async function vaults(): Promise<Pick<NotesFacts, "vaults" | "away">> {
    try {
      const views = await acts.list();
      return { vaults: await Promise.all(views.map(factsOf)), away: null };
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      return { vaults: [], away: error.sentences.join(" ") };
    }
  }

  /** With their texts where they can be read; a text is why they are not known. */
  async function conflictsOf(
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
        open: `They could not be listed in time: \`hearth notes conflicts ${vault}\` waits longer.`,
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

  return {
    atAll: async () => {
      const jobs = parts.jobs.list();
      return {
        ...(await vaults()),
        backups: listBackups(parts.backups),
        backupJob: jobs.find(({ name }) => name === "notes-backup"),
        drillJob: jobs.find(({ name }) => name === "notes-drill"),
        timeZone,
        now: parts.now(),
      };
    },
    at: async (vault, from) => {
      const view = await acts.view(vault);
      return {
        ...(await factsOf(view)),
        ...(view.state === "gone"
          ? { conflicts: [], open: 0, growth: null }
          : {
              ...(await conflictsOf(vault, from)),
              growth: await acts.growth(vault),
            }),
        from,
        timeZone,
        now: parts.now(),
      };
    },
    asksForPassphrase: (vault) => {
      const file = fileOf(vault);
      return file?.choices.e2ee === true && file.vaultPassphrase === null;
    },
    usualChoices: vaultChoices.parse({}),
  };
}
