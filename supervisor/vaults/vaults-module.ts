import { join } from "node:path";
import { DAY_MS } from "../../core/duration.ts";
import { readVariable } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { withAuthor } from "../history/author.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { notesOffsiteDrill } from "../offsite/offsite-jobs.ts";
import type { Context, Module } from "../context.ts";
import { LARGE_BYTES } from "./compaction.ts";
import { impatient, openCouch } from "./couch.ts";
import { VaultInspector } from "./vault-inspector.ts";
import { notesJobs } from "./notes-jobs.ts";
import { openNotesState, type NotesState } from "./notes-state.ts";
import { Provisioning } from "./provisioning.ts";
import { openEscrow, type EscrowFiles } from "./seed-escrow.ts";
import { createMutex } from "../../core/mutex.ts";
import { openVaultActs, type VaultOperations } from "./vault-acts.ts";
import { openVaultFiles, type VaultFiles } from "./vault-file.ts";
import { VaultMaintenance } from "./vault-maintenance.ts";

const LARGE_AGAIN_AFTER_MS = DAY_MS;
const PAGE_WAITS_AT_MOST_MS = 2500;

/** Operations of the console on the vaults. */
export interface Vaults {
  readonly acts: VaultOperations;
  /** The same with short deadlines, for pages. */
  readonly promptActs: VaultOperations;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** Directory of the backups. */
  readonly backups: string;
}

/** Why this supervisor has no vaults, and the address of the one that has them, if known. */
export interface NoVaults {
  readonly why: string;
  readonly peer: string | undefined;
}

/** Maintenance, jobs and operations of the notes store; inactive where no jobs run. */
export function openVaultsModule(
  context: Context,
): Module & { readonly vaults: Vaults | NoVaults } {
  const url = readVariable("NOTES_URL", context.env);
  if (url === undefined || !jobsAreOn(context.env)) {
    return {
      vaults: noVaults(context.env, url),
      // They may be of the previous process, which managed the store.
      start: () => context.alarms.retain("notes-", []),
      stop: async () => {},
    };
  }
  const parts = openParts(context, url);
  for (const job of notesJobs(parts)) {
    context.jobs.add(job);
  }
  context.jobs.add(notesOffsiteDrill(context, parts.couch, parts.busy));
  const maintenance = new VaultMaintenance(context, parts);
  return {
    vaults: {
      acts: openVaultActs(parts),
      promptActs: openVaultActs({
        ...parts,
        couch: impatient(parts.couch, PAGE_WAITS_AT_MOST_MS),
      }),
      escrow: parts.escrow,
      files: parts.files,
      backups: parts.backups,
    },
    start: () => maintenance.start(),
    refresh: () => maintenance.refresh(),
    stop: () => maintenance.stop(),
  };
}

function noVaults(env: Context["env"], url: string | undefined): NoVaults {
  const peer = readVariable("HEARTH_PEER_URL", env);
  const why =
    url === undefined
      ? "NOTES_URL is not set: this supervisor has no notes store."
      : `this supervisor does not manage the notes store (HEARTH_JOBS is off): use the supervisor of its host${peerHint(peer)}.`;
  return { why, peer };
}

/** Dependencies of maintenance, jobs and operations. */
function openParts(context: Context, url: string) {
  const { home, env, config, alarms, history, onNotice } = context;
  const store = {
    couch: openCouch({
      url,
      password: () => readVariable("NOTES_ADMIN_PASSWORD", env),
    }),
    state: openNotesState(join(home.root, "notes-state.json"), onNotice),
    escrow: openEscrow(join(home.root, "escrow")),
    files: openVaultFiles(join(home.root, "vaults")),
    backups: join(home.backups, "notes"),
    address: () => config.notes.public_url ?? url,
    busy: new Set<string>(),
    turns: createMutex(),
    freeBytes: () => freeBytesOf(home.root),
    alarms,
    now: Date.now,
  };
  return {
    ...store,
    config,
    inspector: new VaultInspector({
      ...store,
      deletionLimits: config.notes.mass_deletion,
      largeFrom: LARGE_BYTES,
      onLarge: compactionOfLarge(context.jobs, store.state),
    }),
    provisioning: new Provisioning(store),
    note: (sentence: string) =>
      history.act("notes", "asked", withAuthor(sentence)),
  };
}

/** Runs the compaction for a vault that has grown large, at most once a day. */
function compactionOfLarge(
  jobs: Context["jobs"],
  state: NotesState,
): (vault: string) => void {
  const startedAt = new Map<string, number>();
  return (vault) => {
    const last = Math.max(
      startedAt.get(vault) ?? 0,
      state.vault(vault).compactedAt ?? 0,
    );
    if (Date.now() - last < LARGE_AGAIN_AFTER_MS) {
      return;
    }
    startedAt.set(vault, Date.now());
    try {
      jobs.run("compaction", { vault, large: true });
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      startedAt.delete(vault);
    }
  };
}

function peerHint(peer: string | undefined): string {
  return peer === undefined ? "" : `, such as ${peer}`;
}
