import { join } from "node:path";
import { readVariable } from "../../core/environment.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { notesOffsiteDrill } from "../offsite/offsite-jobs.ts";
import type { Context, Module, VaultDevice } from "../context.ts";
import { LARGE_BYTES } from "./compaction.ts";
import { impatient, openCouch, type Couch } from "./couch.ts";
import { openDatabase, vaultNames } from "./database.ts";
import { followDatabases } from "./database-updates.ts";
import { Keeper } from "./keeper.ts";
import { notesJobs } from "./notes-jobs.ts";
import { openPendingConflicts } from "./pending-conflicts.ts";
import { openNotesState } from "./notes-state.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { Provisioning } from "./provisioning.ts";
import { dropUnfinished } from "./restore.ts";
import { openQuietVaults } from "./quiet-vaults.ts";
import { readRoster } from "./roster.ts";
import { openEscrow, type EscrowFiles } from "./seed-escrow.ts";
import { takeTurns } from "./turns.ts";
import { openVaultActs, type VaultActs } from "./vault-acts.ts";
import { openVaultFiles, type VaultFiles } from "./vault-file.ts";

const TICK_EVERY_MS = 2000;
const LOOK_EVERY_MS = 60_000;
const LARGE_AGAIN_AFTER_MS = 24 * 3_600_000;
const PAGE_WAITS_AT_MOST_MS = 2500;
const STOP_WITHIN_MS = 5000;
const BEGIN_FINGERPRINT = "notes-begin";

/** What the console does with the vaults. */
export interface Vaults {
  readonly acts: VaultActs;
  /** The same on a store that is not waited for long: for pages. */
  readonly promptActs: VaultActs;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** Directory of the backups. */
  readonly backups: string;
}

/** Why this supervisor has no vaults, and the address of the one that has them where it is known. */
export interface NoVaults {
  readonly why: string;
  readonly peer: string | undefined;
}

/** Everything the supervisor does about the notes store; nothing where no jobs run. */
export function openVaultsModule(
  context: Context,
): Module & { readonly vaults: Vaults | NoVaults } {
  const { home, env, config, alarms, jobs, onNotice } = context;
  const url = readVariable("NOTES_URL", env);
  if (url === undefined || !jobsAreOn(env)) {
    const peer = readVariable("HEARTH_PEER_URL", env);
    const why =
      url === undefined
        ? "NOTES_URL is not set, so this supervisor knows no notes store."
        : `this supervisor does not look after the notes store (HEARTH_JOBS is off): ask the one on the host that has it${peerHint(peer)}.`;
    return {
      vaults: { why, peer },
      start: () => {},
      stop: async () => {},
    };
  }
  const couch = openCouch({
    url,
    password: () => readVariable("NOTES_ADMIN_PASSWORD", env),
  });
  const address = () => config.notes.public_url ?? url;
  const state = openNotesState(join(home.root, "notes-state.json"), onNotice);
  const escrow = openEscrow(join(home.root, "escrow"));
  const files = openVaultFiles(join(home.root, "vaults"));
  const backups = join(home.backups, "notes");
  const busy = new Set<string>();
  const quiet = openQuietVaults(Date.now);
  const devices = openDevices(couch);
  const pendingConflicts = openPendingConflicts(couch, state, Date.now);
  const turns = takeTurns();
  const freeBytes = () => freeBytesOf(home.root);
  const largeAt = new Map<string, number>();
  const keeper = new Keeper({
    couch,
    state,
    escrow,
    alarms,
    deletionLimits: config.notes.mass_deletion,
    largeFrom: LARGE_BYTES,
    turns,
    busy,
    onLarge: (vault) => {
      const last = Math.max(
        largeAt.get(vault) ?? 0,
        state.vault(vault).compactedAt ?? 0,
      );
      if (Date.now() - last < LARGE_AGAIN_AFTER_MS) {
        return;
      }
      largeAt.set(vault, Date.now());
      try {
        jobs.run("compaction", { vault, large: true });
      } catch (error) {
        if (!(error instanceof Failure)) {
          throw error;
        }
        largeAt.delete(vault);
      }
    },
    freeBytes,
    now: Date.now,
  });
  const provisioning = new Provisioning({
    couch,
    files,
    state,
    address,
    escrow,
    backups,
  });
  const actParts = {
    couch,
    state,
    escrow,
    files,
    keeper,
    provisioning,
    turns,
    freeBytes,
    now: Date.now,
    note: (sentence: string) => context.history.act("notes", "asked", sentence),
  };
  const vaults: Vaults = {
    acts: openVaultActs(actParts),
    promptActs: openVaultActs({
      ...actParts,
      couch: impatient(couch, PAGE_WAITS_AT_MOST_MS),
    }),
    escrow,
    files,
    backups,
  };
  for (const job of notesJobs({
    couch,
    state,
    escrow,
    files,
    alarms,
    config,
    backups,
    busy,
    address,
    freeBytes,
  })) {
    jobs.add(job);
  }
  jobs.add(notesOffsiteDrill(context, couch, busy));

  let leftoversDropped = false;

  /** Each step once after a start, as soon as the store answers. */
  async function prepare(): Promise<void> {
    if (!leftoversDropped) {
      for (const vault of await dropUnfinished(couch, busy)) {
        onNotice(
          `the restore of vault ${vault} was broken off; what was there of it is dropped: run it again.`,
        );
      }
    }
    leftoversDropped = true;
    await makeFirstVault();
  }

  async function makeFirstVault(): Promise<void> {
    const vault = config.notes.first_vault;
    if (vault === "off" || state.firstVaultMade()) {
      return;
    }
    const others = (await vaultNames(couch)).filter(
      (name) => name !== vault || files.read(name) === undefined,
    );
    if (others.length === 0 && state.vault(vault).member === null) {
      await provisioning.add({ vault, choices: vaultChoices.parse({}) });
    }
    state.rememberFirstVault();
  }

  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let prepared = false;
  let nextLook = 0;
  let seenStart = "";

  async function lookOnce(): Promise<void> {
    let trouble: unknown;
    try {
      if (!prepared) {
        await turns(prepare);
      }
      prepared = true;
    } catch (error) {
      trouble = error;
    }
    const skipped = quiet.take();
    const restored = new Set(busy);
    const answered = await keeper.look(skipped);
    // Where nothing can be done at all, the look has told so.
    if (trouble === undefined) {
      alarms.clear(BEGIN_FINGERPRINT);
    } else if (answered) {
      alarms.raise({
        fingerprint: BEGIN_FINGERPRINT,
        level: "warning",
        subject: "notes",
        text: `the first vault cannot be made, or what a restore left cannot be cleared: ${sentencesOf(trouble).join(" ")}`,
        command: "hearth notes list",
      });
    }
    if (answered) {
      const names = await vaultNames(couch);
      context.showDevices(await devices(names, skipped));
      context.need("conflicts", await pendingConflicts(names, skipped));
      quiet.read(
        names.filter((vault) => !restored.has(vault) && !busy.has(vault)),
      );
    }
    nextLook = Date.now() + (answered ? LOOK_EVERY_MS : 0);
  }

  function tick(): void {
    const service = context.runtime()?.inspect("notes");
    const start =
      service === undefined
        ? ""
        : `${service.pid} ${service.state} ${service.since}`;
    if (start !== seenStart) {
      nextLook = 0;
    }
    seenStart = start;
    if (looking !== undefined || Date.now() < nextLook) {
      return;
    }
    looking = lookOnce()
      .catch((error: unknown) => onNotice(sentencesOf(error).join(" ")))
      .finally(() => {
        looking = undefined;
      });
  }

  return {
    vaults,
    start: () => {
      tick();
      timer = setInterval(tick, TICK_EVERY_MS);
      void followDatabases(
        couch,
        { created: (vault) => keeper.lookAt(vault), quiet },
        stopping.signal,
      );
    },
    stop: async () => {
      clearInterval(timer);
      stopping.abort();
      const patience = Promise.withResolvers<void>();
      const giveUp = setTimeout(patience.resolve, STOP_WITHIN_MS);
      await Promise.race([looking, patience.promise]);
      clearTimeout(giveUp);
    },
  };
}

/** The devices of vaults, as the status page shows them; those of quiet vaults as they were read last. */
function openDevices(couch: Couch) {
  const known = new Map<string, readonly VaultDevice[]>();
  return async (
    vaults: readonly string[],
    quiet: ReadonlySet<string>,
  ): Promise<readonly VaultDevice[]> => {
    const all: VaultDevice[] = [];
    for (const vault of vaults) {
      if (!quiet.has(vault)) {
        known.set(vault, await devicesOf(couch, vault));
      }
      all.push(...(known.get(vault) ?? []));
    }
    return all;
  };
}

async function devicesOf(
  couch: Couch,
  vault: string,
): Promise<readonly VaultDevice[]> {
  const { devices } = await readRoster(openDatabase(couch, vault));
  return devices.map(({ name, lastSeen, behind }) => ({
    vault,
    name,
    behind,
    seenAt: lastSeen === 0 ? null : lastSeen,
  }));
}

function peerHint(peer: string | undefined): string {
  return peer === undefined ? "" : `, such as ${peer}`;
}
