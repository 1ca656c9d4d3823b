import { DAY_MS } from "../../core/duration.ts";
import type { Alarm, ReplacedAlarms } from "../alerts/alarm.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { withBackedUpSeed } from "./backed-up-seed.ts";
import { memberRules } from "./access-rules.ts";
import { NoAnswer, type Couch } from "./couch.ts";
import { Database, vaultNames } from "./database.ts";
import type { DeletionLimits } from "./deletions.ts";
import { growthAlarm, GROWTH_FINGERPRINT } from "./growth.ts";
import { troubledVaults } from "./troubled-vaults.ts";
import { SEED_ID, seedOf } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import { acceptedSeed, accepting, type EscrowFiles } from "./seed-escrow.ts";
import type { Mutex } from "../../core/mutex.ts";
import { unreadableWords, whyUnreadable } from "./unreadable-vault.ts";
import { NoSuchVault } from "./vault-names.ts";
import {
  allFingerprints,
  failingAlarms,
  fingerprints,
  hungAlarm,
} from "./vault-alarms.ts";
import {
  inspectVault,
  measureDaily,
  type InspectionFindings,
} from "./vault-inspection.ts";

interface InspectorParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  /** `backups/notes`. */
  readonly backups: string;
  readonly alarms: ReplacedAlarms;
  readonly deletionLimits: DeletionLimits;
  /** Bytes from which on a database is large. */
  readonly largeFrom: number;
  /** Inspections and changes of vaults never overlap. */
  readonly turns: Mutex;
  /** Vaults that are being restored; they are skipped. */
  readonly busy: ReadonlySet<string>;
  /** A database is so large, with so much reclaimable space, that it should be compacted before its monthly schedule. */
  readonly onLarge: (vault: string) => void;
  /** Bytes that are free where the store keeps its files. */
  readonly freeBytes: () => number;
  readonly now: () => number;
}

export interface SeedAnswer {
  readonly vault: string;
  readonly did: "restored" | "accepted";
}

/** How long an event remains an alarm, unless it is silenced. */
const EVENT_ALARM_MS = DAY_MS;
const STORE_FINGERPRINT = "notes-store";

/** Inspects every vault and raises alarms: seeds, access rules, deletions, databases that are created or dropped. */
export class VaultInspector {
  readonly #parts: InspectorParts;
  readonly #missingBefore = new Set<string>();
  /** Vaults whose last inspection failed. */
  readonly #failed = new Set<string>();

  constructor(parts: InspectorParts) {
    this.#parts = parts;
  }

  /** Inspects every vault except quiet ones; never throws. True if the store answered. */
  inspectAll(quiet: ReadonlySet<string> = new Set()): Promise<boolean> {
    return this.#parts.turns(async () => {
      try {
        await this.#inspectVaults(quiet);
        return true;
      } catch (error) {
        // A store that does not respond is reported by the checks.
        if (!(error instanceof NoAnswer)) {
          this.#parts.alarms.raise({
            fingerprint: STORE_FINGERPRINT,
            level: "warning",
            subject: "notes",
            text: `maintenance of the vaults failed: ${sentencesOf(error).join(" ")}`,
            command: "hearth notes list",
          });
        }
        return false;
      }
    });
  }

  /** Inspects one provisioned vault, as soon as its database was recreated; never throws. */
  inspect(vault: string): Promise<void> {
    const { turns, busy, state } = this.#parts;
    return turns(async () => {
      if (busy.has(vault) || state.vault(vault).member === null) {
        return;
      }
      // Repeated by the next inspection of all vaults.
      await this.#inspectOne(vault).catch(() => {});
      this.#raiseEventAlarms();
    });
  }

  /** Restores the accepted seed, or accepts the current one (`accept`), and restores access for devices. Throws a Failure. */
  restoreSeed(vault: string, accept: boolean): Promise<SeedAnswer> {
    return this.#parts.turns(() => this.#settleSeed(vault, accept));
  }

  /** Clears the alarms of a vault that was removed on purpose. */
  forget(vault: string): void {
    const { alarms, state } = this.#parts;
    const own = allFingerprints(vault);
    this.#missingBefore.delete(vault);
    this.#failed.delete(vault);
    own.forEach((fingerprint) => alarms.clear(fingerprint));
    state.setEventAlarms(
      state
        .eventAlarms()
        .filter(({ alarm }) => !own.includes(alarm.fingerprint)),
    );
  }

  async #inspectVaults(quiet: ReadonlySet<string>): Promise<void> {
    const { couch, state, alarms, busy } = this.#parts;
    const there = await vaultNames(couch);
    alarms.clear(STORE_FINGERPRINT);
    await this.#reportTrouble();
    const known = state.known().filter((name) => !there.includes(name));
    for (const name of there.concat(known)) {
      if (busy.has(name)) {
        continue;
      }
      const isRead = quiet.has(name) && !this.#failed.has(name);
      if (there.includes(name) && isRead) {
        continue;
      }
      if (!there.includes(name) && state.vault(name).member === null) {
        // The vault was not provisioned here.
        this.forget(name);
        state.forget(name);
        continue;
      }
      await this.#inspectOne(name);
    }
    const growth = growthAlarm(state, this.#parts.freeBytes());
    if (growth === undefined) {
      alarms.clear(GROWTH_FINGERPRINT);
    } else {
      alarms.raise(growth);
    }
    this.#raiseEventAlarms();
  }

  async #reportTrouble(): Promise<void> {
    const { couch, alarms } = this.#parts;
    const { hung, failing } = await troubledVaults(couch);
    alarms.replace(
      fingerprints.hung(""),
      [...hung].map(([vault, isHung]) => hungAlarm(vault, isHung)),
    );
    alarms.replace(fingerprints.failing(""), failingAlarms(failing));
  }

  async #inspectOne(vault: string): Promise<void> {
    const { alarms } = this.#parts;
    const trouble = fingerprints.inspection(vault);
    this.#failed.add(vault);
    try {
      const findings = await inspectVault(this.#parts, vault);
      this.#report(vault, findings);
      if (findings.large) {
        this.#parts.onLarge(vault);
      }
      if (findings.active !== null) {
        await measureDaily(this.#parts, vault, findings.active);
      }
      if (findings.unreadable !== undefined) {
        throw findings.unreadable;
      }
      alarms.clear(trouble);
      this.#failed.delete(vault);
    } catch (error) {
      if (error instanceof NoAnswer) {
        throw error;
      }
      const why = whyUnreadable(error);
      // Any other answer 500 may concern one request only, and names its cause.
      const isUnusable = why === "damaged" || why === "newer";
      alarms.raise({
        fingerprint: trouble,
        level: isUnusable ? "down" : "warning",
        subject: `vault ${vault}`,
        text: isUnusable
          ? unreadableWords(vault, why)
          : sentencesOf(error).join(" "),
        command: "hearth notes list",
      });
    }
  }

  #report(
    vault: string,
    { lasting, happened, unreadable }: InspectionFindings,
  ): void {
    const { alarms, state, now } = this.#parts;
    const gone = fingerprints.gone(vault);
    const found = lasting.filter(({ fingerprint }) => {
      if (fingerprint !== gone) {
        return true;
      }
      // A device that rebuilds its remote drops the database for a moment.
      const before = this.#missingBefore.has(vault);
      this.#missingBefore.add(vault);
      return before;
    });
    if (!lasting.some(({ fingerprint }) => fingerprint === gone)) {
      this.#missingBefore.delete(vault);
    }
    const inspected =
      unreadable === undefined
        ? [gone, fingerprints.seed(vault), fingerprints.seedMissing(vault)]
        : [gone];
    for (const fingerprint of inspected) {
      if (!lasting.some((alarm) => alarm.fingerprint === fingerprint)) {
        alarms.clear(fingerprint);
      }
    }
    found.forEach((alarm) => alarms.raise(alarm));
    if (happened.length > 0) {
      state.setEventAlarms([
        ...state.eventAlarms().filter(({ alarm }) => !isAmong(alarm, happened)),
        ...happened.map((alarm) => ({ alarm, until: now() + EVENT_ALARM_MS })),
      ]);
    }
  }

  /** Alarms about events are raised at every inspection, also after a restart, until they expire. */
  #raiseEventAlarms(): void {
    const { alarms, state, now } = this.#parts;
    const events = state.eventAlarms();
    for (const { alarm, until } of events) {
      if (until > now()) {
        alarms.raise(alarm);
      } else {
        alarms.clear(alarm.fingerprint);
      }
    }
    state.setEventAlarms(events.filter(({ until }) => until > now()));
  }

  async #settleSeed(vault: string, accept: boolean): Promise<SeedAnswer> {
    const { couch, state, escrow, alarms, now } = this.#parts;
    const database = new Database(couch, vault);
    const info = await database.info();
    if (info === undefined) {
      throw new NoSuchVault(vault);
    }
    const instance = info.instance_start_time;
    const kept = await withBackedUpSeed(
      this.#parts,
      escrow.read(vault),
      instance,
    );
    const present = seedOf(await database.document(SEED_ID));
    const seed = accept ? present : acceptedSeed(kept);
    if (seed === undefined) {
      throw new Failure(
        accept && acceptedSeed(kept) !== undefined
          ? `vault "${vault}" has no security seed to accept: omit --accept to restore the stored copy.`
          : present === undefined
            ? `no copy of a security seed of vault "${vault}" found: in a new vault, the first device that syncs creates it; for notes from another server, copy ${SEED_ID} from there before a device syncs.`
            : `no copy of the original security seed of vault "${vault}" found: restore ${escrow.pathOf(vault)} from a copy, or accept the current seed with --accept.`,
      );
    }
    if (present?.pbkdf2salt !== seed.pbkdf2salt) {
      await database.put(SEED_ID, seed);
    }
    const { member } = state.vault(vault);
    const before = kept.closed?.rules ?? (await database.rulesBeforeBlock());
    // Rules that were already closed when the seed changed would lock out every device permanently.
    if (before !== undefined) {
      await database.secure(member === null ? before : memberRules(member));
    }
    escrow.write(accepting(kept, seed, instance, now()));
    alarms.clear(fingerprints.seed(vault));
    return { vault, did: accept ? "accepted" : "restored" };
  }
}

function isAmong(alarm: Alarm, others: readonly Alarm[]): boolean {
  return others.some(({ fingerprint }) => fingerprint === alarm.fingerprint);
}
