import type { Alarm, Alarms } from "../alerts/alarm.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import { closedRules, memberRules } from "./access-rules.ts";
import { NoAnswer, type Couch } from "./couch.ts";
import { openDatabase, vaultNames } from "./database.ts";
import type { DeletionLimits } from "./deletions.ts";
import { growthAlarm, GROWTH_FINGERPRINT } from "./growth.ts";
import { hungVaults } from "./hung-vaults.ts";
import { SEED_ID, seedOf } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import { acceptedSeed, accepting, type EscrowFiles } from "./seed-escrow.ts";
import type { Turns } from "./turns.ts";
import { NoSuchVault } from "./vault-names.ts";
import { allFingerprints, fingerprints, hungAlarm } from "./vault-alarms.ts";
import { lookAtVault, measureDaily, type LookFindings } from "./vault-look.ts";

export interface KeeperParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly alarms: Alarms;
  readonly deletionLimits: DeletionLimits;
  /** Bytes from which on a database is large. */
  readonly largeFrom: number;
  /** Looks and changes of vaults never overlap. */
  readonly turns: Turns;
  /** Vaults that are being restored: nobody looks at them. */
  readonly busy: ReadonlySet<string>;
  /** A database has grown so large, with so much to be had back, that it should not wait for its month to end. */
  readonly onLarge: (vault: string) => void;
  /** Bytes that are free where the store keeps its files. */
  readonly freeBytes: () => number;
  readonly now: () => number;
}

export interface SeedAnswer {
  readonly vault: string;
  readonly did: "restored" | "accepted";
}

/** Looks after every vault: seeds, access rules, deletions, databases that come and go. */
export interface Keeper {
  /** One look at everything but the vaults that are quiet; never throws. True when the store answered. */
  readonly look: (quiet?: ReadonlySet<string>) => Promise<boolean>;
  /** The same for one vault of ours, as soon as its database was created again; never throws. */
  readonly lookAt: (vault: string) => Promise<void>;
  /** Puts the accepted seed back, or takes the present one (`accept`), and lets the devices in again. Throws a Failure. */
  readonly restoreSeed: (vault: string, accept: boolean) => Promise<SeedAnswer>;
  /** The vault was removed on purpose: nothing about it is told any more. */
  readonly forget: (vault: string) => void;
}

/** What happened stays an alarm for so long, unless it is silenced. */
const STANDS_FOR_MS = 24 * 3_600_000;
const STORE_FINGERPRINT = "notes-store";

export function openKeeper(parts: KeeperParts): Keeper {
  const { couch, state, escrow, alarms, now } = parts;
  const goneBefore = new Set<string>();
  /** Their last look failed. */
  const failed = new Set<string>();
  let hungBefore: readonly string[] = [];

  async function lookAtAll(quiet: ReadonlySet<string>): Promise<void> {
    const there = await vaultNames(couch);
    alarms.clear(STORE_FINGERPRINT);
    await tellHung();
    const known = state.known().filter((name) => !there.includes(name));
    for (const name of there.concat(known)) {
      if (parts.busy.has(name)) {
        continue;
      }
      const isRead = quiet.has(name) && !failed.has(name);
      if (there.includes(name) && isRead) {
        continue;
      }
      if (!there.includes(name) && state.vault(name).member === null) {
        // It was never ours to miss.
        forget(name);
        state.forget(name);
        continue;
      }
      await lookAtOne(name);
    }
    const growth = growthAlarm(state, parts.freeBytes());
    if (growth === undefined) {
      alarms.clear(GROWTH_FINGERPRINT);
    } else {
      alarms.raise(growth);
    }
    tellStanding();
  }

  async function tellHung(): Promise<void> {
    const hung = await hungVaults(couch, now());
    for (const vault of hungBefore) {
      if (!hung.has(vault)) {
        alarms.clear(fingerprints.hung(vault));
      }
    }
    for (const [vault, isHung] of hung) {
      alarms.raise(hungAlarm(vault, isHung));
    }
    hungBefore = [...hung.keys()];
  }

  async function lookAtOne(vault: string): Promise<void> {
    const trouble = fingerprints.look(vault);
    failed.add(vault);
    try {
      const findings = await lookAtVault(parts, vault);
      tell(vault, findings);
      if (findings.large) {
        parts.onLarge(vault);
      }
      if (findings.active !== null) {
        await measureDaily(parts, vault, findings.active);
      }
      alarms.clear(trouble);
      failed.delete(vault);
    } catch (error) {
      if (error instanceof NoAnswer) {
        throw error;
      }
      alarms.raise({
        fingerprint: trouble,
        level: "warning",
        subject: `vault ${vault}`,
        text: sentencesOf(error).join(" "),
        command: "hearth notes list",
      });
    }
  }

  function tell(vault: string, { lasting, happened }: LookFindings): void {
    const gone = fingerprints.gone(vault);
    const found = lasting.filter(({ fingerprint }) => {
      if (fingerprint !== gone) {
        return true;
      }
      // A device that rebuilds its remote drops the database for a moment.
      const before = goneBefore.has(vault);
      goneBefore.add(vault);
      return before;
    });
    if (!lasting.some(({ fingerprint }) => fingerprint === gone)) {
      goneBefore.delete(vault);
    }
    for (const fingerprint of [gone, fingerprints.seed(vault)]) {
      if (!found.some((alarm) => alarm.fingerprint === fingerprint)) {
        alarms.clear(fingerprint);
      }
    }
    found.forEach((alarm) => alarms.raise(alarm));
    if (happened.length > 0) {
      state.stand([
        ...state.standing().filter(({ alarm }) => !isAmong(alarm, happened)),
        ...happened.map((alarm) => ({ alarm, until: now() + STANDS_FOR_MS })),
      ]);
    }
  }

  /** What happened is told again at every look, also after a restart, until its time is over. */
  function tellStanding(): void {
    const standing = state.standing();
    for (const { alarm, until } of standing) {
      if (until > now()) {
        alarms.raise(alarm);
      } else {
        alarms.clear(alarm.fingerprint);
      }
    }
    state.stand(standing.filter(({ until }) => until > now()));
  }

  return {
    look: (quiet = new Set()) =>
      parts.turns(async () => {
        try {
          await lookAtAll(quiet);
          return true;
        } catch (error) {
          // That nothing answers is the checks' to tell.
          if (!(error instanceof NoAnswer)) {
            alarms.raise({
              fingerprint: STORE_FINGERPRINT,
              level: "warning",
              subject: "notes",
              text: `nobody looks after the vaults: ${sentencesOf(error).join(" ")}`,
              command: "hearth notes list",
            });
          }
          return false;
        }
      }),
    lookAt: (vault) =>
      parts.turns(async () => {
        if (parts.busy.has(vault) || state.vault(vault).member === null) {
          return;
        }
        // The next look finds what this one could not.
        await lookAtOne(vault).catch(() => {});
        tellStanding();
      }),
    restoreSeed: (vault, accept) =>
      parts.turns(() => settleSeed(vault, accept)),
    forget,
  };

  function forget(vault: string): void {
    const own = allFingerprints(vault);
    goneBefore.delete(vault);
    failed.delete(vault);
    own.forEach((fingerprint) => alarms.clear(fingerprint));
    state.stand(
      state.standing().filter(({ alarm }) => !own.includes(alarm.fingerprint)),
    );
  }

  async function settleSeed(
    vault: string,
    accept: boolean,
  ): Promise<SeedAnswer> {
    const database = openDatabase(couch, vault);
    const info = await database.info();
    if (info === undefined) {
      throw new NoSuchVault(vault);
    }
    const kept = escrow.read(vault);
    const present = seedOf(await database.document(SEED_ID));
    const seed = accept ? present : acceptedSeed(kept);
    if (seed === undefined) {
      throw new Failure(
        accept
          ? `vault "${vault}" has no security seed that could be accepted: without --accept the copy is put back.`
          : `there is no copy of a security seed of vault "${vault}": a device makes one when it syncs first.`,
      );
    }
    if (present?.pbkdf2salt !== seed.pbkdf2salt) {
      await database.put(SEED_ID, seed);
    }
    const { member } = state.vault(vault);
    const rules = member === null ? kept.closed?.rules : memberRules(member);
    // Rules that were closed already when the seed changed would keep everybody out for ever.
    if (kept.closed !== null) {
      await database.secure(rules ?? closedRules);
    }
    escrow.write(accepting(kept, seed, info.instance_start_time, now()));
    alarms.clear(fingerprints.seed(vault));
    return { vault, did: accept ? "accepted" : "restored" };
  }
}

function isAmong(alarm: Alarm, others: readonly Alarm[]): boolean {
  return others.some(({ fingerprint }) => fingerprint === alarm.fingerprint);
}
