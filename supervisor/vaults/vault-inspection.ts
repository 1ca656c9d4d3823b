import type { Alarm } from "../alerts/alarm.ts";
import { withBackedUpSeed } from "./backed-up-seed.ts";
import { closedRules, memberRules, sameRules } from "./access-rules.ts";
import { Database, type Security } from "./database.ts";
import type { Couch } from "./couch.ts";
import { countDeletions, type DeletionLimits } from "./deletions.ts";
import { isMeasurementDue, withMeasurement } from "./growth.ts";
import { NoHistory, openHistory } from "./history-source.ts";
import {
  ENCRYPTED_CHUNKS,
  SEED_ID,
  SEEDED_PREFIX,
  seedOf,
} from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import {
  accepting,
  closing,
  judgeSeed,
  UnreadableEscrow,
  withVersion,
  type Escrow,
  type EscrowFiles,
} from "./seed-escrow.ts";
import { measureVault } from "./space.ts";
import {
  recreatedAlarm,
  closedAlarm,
  deletionsAlarm,
  missingAlarm,
  missingSeedAlarm,
  putBackAlarm,
  rulesAlarm,
} from "./vault-alarms.ts";

interface VaultAlarms {
  /** Raised until the cause is fixed. */
  readonly lasting: readonly Alarm[];
  readonly happened: readonly Alarm[];
}

export type InspectionFindings = VaultAlarms & {
  /** The database is large, and compaction would help. */
  readonly large: boolean;
  /** Bytes without reclaimable space; null if the database is missing. */
  readonly active: number | null;
  /** Why seed and access rules were not inspected. */
  readonly unreadable: UnreadableEscrow | undefined;
};

interface InspectionParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  /** `backups/notes`. */
  readonly backups: string;
  readonly deletionLimits: DeletionLimits;
  /** Bytes from which on a database is large. */
  readonly largeFrom: number;
  readonly now: () => number;
}

/** Inspects one vault and repairs what needs no decision: lost access rules, a lost seed. */
export async function inspectVault(
  parts: InspectionParts,
  vault: string,
): Promise<InspectionFindings> {
  const { state } = parts;
  const database = new Database(parts.couch, vault);
  const info = await database.info();
  if (info === undefined) {
    return {
      lasting: [missingAlarm(vault)],
      happened: [],
      large: false,
      active: null,
      unreadable: undefined,
    };
  }
  const instance = info.instance_start_time;
  const known = state.vault(vault).instance;
  const isRecreated = known !== null && known !== instance;
  if (known !== instance) {
    state.change(vault, {
      instance,
      deletionsSince: null,
      deletions: [],
      conflicts: {},
      sizes: [],
      space: null,
    });
  }
  const access = await inspectAccess(parts, database, instance);
  const deletions = await inspectDeletions(parts, database);
  const { file, active } = info.sizes;
  return {
    large: file > parts.largeFrom && (file - active) * 5 > file,
    active,
    unreadable: access.unreadable,
    lasting: access.lasting,
    happened: [
      ...(isRecreated ? [recreatedAlarm(vault)] : []),
      ...access.happened,
      ...deletions,
    ],
  };
}

/** Both depend on the copy of the seed; without it, everything else is inspected. */
async function inspectAccess(
  parts: InspectionParts,
  database: Database,
  instance: string,
): Promise<VaultAlarms & Pick<InspectionFindings, "unreadable">> {
  try {
    const { lasting, happened } = await inspectSeed(parts, database, instance);
    const rules = await inspectRules(parts, database);
    return {
      lasting,
      happened: [...happened, ...rules],
      unreadable: undefined,
    };
  } catch (error) {
    if (error instanceof UnreadableEscrow) {
      return { ...NO_ALARMS, unreadable: error };
    }
    throw error;
  }
}

/** Records the size of the vault and its use of space once a day. */
export async function measureDaily(
  { couch, state, now }: Pick<InspectionParts, "couch" | "state" | "now">,
  vault: string,
  active: number,
): Promise<void> {
  const { sizes } = state.vault(vault);
  if (!isMeasurementDue(sizes, now())) {
    return;
  }
  const space = await measureVault(openHistory(couch, vault), vault).catch(
    (error: unknown) => {
      if (error instanceof NoHistory) {
        return null;
      }
      throw error;
    },
  );
  state.change(vault, {
    sizes: withMeasurement(sizes, now(), active).map((point) => ({ ...point })),
    space,
  });
}

async function inspectSeed(
  parts: InspectionParts,
  database: Database,
  instance: string,
): Promise<VaultAlarms> {
  const { escrow, now } = parts;
  const vault = database.name;
  const found = escrow.read(vault);
  const kept = await withBackedUpSeed(parts, found, instance);
  const seed = seedOf(await database.document(SEED_ID));
  const verdict = judgeSeed(kept, {
    instance,
    seed,
    isBlocked:
      (kept.closed !== null && kept.instance === instance) ||
      (await database.rulesBeforeBlock()) !== undefined,
    hasNotes:
      seed === undefined &&
      (await needsSeed(database, kept.instance === instance)),
  });
  switch (verdict.kind) {
    case "fine": {
      if (kept !== found && seed !== undefined) {
        escrow.write(kept);
      }
      if (kept.closed === null) {
        return NO_ALARMS;
      }
      // A recreated database is not the one that was closed.
      if (kept.instance === instance) {
        return { lasting: [closedAlarm(vault)], happened: [] };
      }
      escrow.write({ ...kept, closed: null });
      return NO_ALARMS;
    }
    case "accept":
      escrow.write(accepting(kept, verdict.seed, instance, now()));
      return NO_ALARMS;
    case "put-back":
      await database.put(SEED_ID, verdict.seed);
      // Blocked access stays blocked until a person decides.
      escrow.write({
        ...accepting(kept, verdict.seed, instance, now()),
        closed: kept.closed,
      });
      return { lasting: [], happened: [putBackAlarm(vault)] };
    case "missing":
      return { lasting: [missingSeedAlarm(vault)], happened: [] };
    case "changed": {
      // The database may have been recreated meanwhile: then the next inspection accepts the seed.
      const latest = await database.info();
      if (latest?.instance_start_time !== instance) {
        return NO_ALARMS;
      }
      await blockAccess(parts, database, {
        ...withVersion(kept, verdict.seed, instance, now()),
        instance,
      });
      return { lasting: [closedAlarm(vault)], happened: [] };
    }
  }
}

async function blockAccess(
  { escrow, state, now }: InspectionParts,
  database: Database,
  kept: Escrow,
): Promise<void> {
  const { member } = state.vault(database.name);
  const current = await database.security();
  const before =
    member === null
      ? ((await database.rulesBeforeBlock()) ?? current)
      : memberRules(member);
  if (!sameRules(current, closedRules)) {
    await database.block(closedRules, before);
  }
  // Last, so that a full disk does not leave access open.
  escrow.write(closing(kept, before, now()));
}

/** In a database in which no seed was seen, only encrypted chunks show that its notes came from another one and need that seed. */
async function needsSeed(
  database: Database,
  sameDatabase: boolean,
): Promise<boolean> {
  if (!sameDatabase) {
    const chunk = await database.firstBetween(...ENCRYPTED_CHUNKS);
    return String(chunk?.["data"]).startsWith(SEEDED_PREFIX);
  }
  return ((await database.info())?.doc_count ?? 0) > 0;
}

async function inspectRules(
  { escrow, state }: InspectionParts,
  database: Database,
): Promise<readonly Alarm[]> {
  const { member } = state.vault(database.name);
  const { closed } = escrow.read(database.name);
  const due: Security | undefined =
    closed !== null
      ? closedRules
      : member === null
        ? undefined
        : memberRules(member);
  if (due === undefined) {
    return [];
  }
  if (
    sameRules(await database.security(), due) ||
    (await database.isRestoring())
  ) {
    return [];
  }
  await (closed === null
    ? database.secure(due)
    : database.block(due, closed.rules));
  return [rulesAlarm(database.name)];
}

async function inspectDeletions(
  { state, deletionLimits, now }: InspectionParts,
  database: Database,
): Promise<readonly Alarm[]> {
  const vault = database.name;
  const { change, mass } = await countDeletions(
    database,
    state.vault(vault),
    deletionLimits,
    now(),
  );
  state.change(vault, change);
  if (mass === undefined) {
    return [];
  }
  return [deletionsAlarm(vault, mass)];
}

const NO_ALARMS: VaultAlarms = { lasting: [], happened: [] };
