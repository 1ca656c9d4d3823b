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

export interface NotesLookParts {
  /** On a store that is not waited for long. */
  readonly acts: VaultActs;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly jobs: JobRunner;
  readonly backups: string;
  readonly timeZone: string;
  readonly now: () => number;
}

/** Reads what the pages show. */
export class NotesLook {
  readonly usualChoices: VaultChoices = vaultChoices.parse({});
  readonly #parts: NotesLookParts;

  constructor(parts: NotesLookParts) {
    this.#parts = parts;
  }

  /** All vaults. Never throws: what is away is said. */
  async atAll(): Promise<Omit<NotesFacts, "addFields" | "adding">> {
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

  /** One vault, with conflicts from one place on. Throws a Failure when there is no such vault, or the store is away. */
  async at(
    vault: string,
    from: number,
  ): Promise<
    Omit<VaultPageFacts, "setupFields" | "rotateFields" | "formOpen">
  > {
    const { acts, now, timeZone } = this.#parts;
    const view = await acts.view(vault);
    return {
      ...(await this.#factsOf(view)),
      ...(view.state === "gone"
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

  /** Its own is not kept here, so that a new Setup URI needs it typed. */
  asksForPassphrase(vault: string): boolean {
    const file = this.#fileOf(vault);
    return file?.choices.e2ee === true && file.vaultPassphrase === null;
  }

  async #vaults(): Promise<Pick<NotesFacts, "vaults" | "away">> {
    try {
      const views = await this.#parts.acts.list();
      return {
        vaults: await Promise.all(views.map((view) => this.#factsOf(view))),
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
      roster: view.state === "gone" ? null : await acts.devices(vault),
      closedSince: escrow.read(vault).closed?.since ?? null,
      encrypted: this.#fileOf(vault)?.choices.e2ee ?? null,
    };
  }

  /** Undefined when there is none, or it is broken: then rotating makes a new one. */
  #fileOf(vault: string): VaultFile | undefined {
    try {
      return this.#parts.files.read(vault);
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      return undefined;
    }
  }
}

/** With their texts where they can be read; a text is why they are not known. */
async function readConflicts(
  acts: VaultActs,
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
