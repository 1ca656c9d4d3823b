import type { Alarm } from "../alerts/alarm.ts";
import { closedRules, memberRules, sameRules } from "./access-rules.ts";
import { openDatabase, type Database, type Security } from "./database.ts";
import type { Couch } from "./couch.ts";
import { countDeletions, type DeletionLimits } from "./deletions.ts";
import { isMeasurementDue, withMeasurement } from "./growth.ts";
import { NoHistory, openHistory } from "./history-source.ts";
import { ENCRYPTED_CHUNKS, SEED_ID, seedOf } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import {
  accepting,
  closing,
  judgeSeed,
  withVersion,
  type EscrowFiles,
} from "./seed-escrow.ts";
import { measureVault } from "./space.ts";
import {
  anewAlarm,
  closedAlarm,
  deletionsAlarm,
  goneAlarm,
  putBackAlarm,
  rulesAlarm,
} from "./vault-alarms.ts";

interface Troubles {
  /** They last until they are mended. */
  readonly lasting: readonly Alarm[];
  readonly happened: readonly Alarm[];
}

export type LookFindings = Troubles & {
  /** The database is large, and compaction would help. */
  readonly large: boolean;
  /** Bytes without what a compaction frees; null where the database is gone. */
  readonly active: number | null;
};

export interface LookParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly deletionLimits: DeletionLimits;
  /** Bytes from which on a database is large. */
  readonly largeFrom: number;
  readonly now: () => number;
}

/** Looks at one vault and puts right what may be put right without asking: lost access rules, a lost seed. */
export async function lookAtVault(
  parts: LookParts,
  vault: string,
): Promise<LookFindings> {
  const { state } = parts;
  const database = openDatabase(parts.couch, vault);
  const info = await database.info();
  if (info === undefined) {
    return {
      lasting: [goneAlarm(vault)],
      happened: [],
      large: false,
      active: null,
    };
  }
  const instance = info.instance_start_time;
  const known = state.vault(vault).instance;
  const anew = known !== null && known !== instance;
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
  const seed = await lookAtSeed(parts, database, instance);
  const rules = await lookAtRules(parts, database);
  const deletions = await lookAtDeletions(parts, database);
  const { file, active } = info.sizes;
  return {
    large: file > parts.largeFrom && (file - active) * 5 > file,
    active,
    lasting: seed.lasting,
    happened: [
      ...(anew ? [anewAlarm(vault)] : []),
      ...seed.happened,
      ...rules,
      ...deletions,
    ],
  };
}

/** Keeps the size of the vault once a day, and what takes it up. */
export async function measureDaily(
  { couch, state, now }: Pick<LookParts, "couch" | "state" | "now">,
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

async function lookAtSeed(
  { escrow, now }: LookParts,
  database: Database,
  instance: string,
): Promise<Troubles> {
  const vault = database.name;
  const kept = escrow.read(vault);
  const seed = seedOf(await database.document(SEED_ID));
  const verdict = judgeSeed(kept, {
    instance,
    seed,
    hasNotes:
      seed === undefined &&
      kept.accepted !== null &&
      (await needsSeed(database, kept.instance === instance)),
  });
  switch (verdict.kind) {
    case "fine": {
      // A database that was made anew is no longer the one that was closed.
      if (kept.closed === null) {
        return nothing;
      }
      if (kept.instance === instance) {
        return { lasting: [closedAlarm(vault)], happened: [] };
      }
      escrow.write({ ...kept, closed: null });
      return nothing;
    }
    case "accept":
      escrow.write(accepting(kept, verdict.seed, instance, now()));
      return nothing;
    case "put-back":
      await database.put(SEED_ID, verdict.seed);
      // Where access was taken away it stays so: a person looks first.
      escrow.write({
        ...accepting(kept, verdict.seed, instance, now()),
        closed: kept.closed,
      });
      return { lasting: [], happened: [putBackAlarm(vault)] };
    case "changed": {
      // It may have been made anew since its information was read: then the next look accepts the seed.
      const latest = await database.info();
      if (latest?.instance_start_time !== instance) {
        return nothing;
      }
      const rules = await database.security();
      escrow.write(
        closing(withVersion(kept, verdict.seed, instance, now()), rules, now()),
      );
      if (!sameRules(rules, closedRules)) {
        await database.secure(closedRules);
      }
      return { lasting: [closedAlarm(vault)], happened: [] };
    }
  }
}

/** In a database made anew, only encrypted chunks show that its notes came from the old one and need the old seed. */
async function needsSeed(
  database: Database,
  sameDatabase: boolean,
): Promise<boolean> {
  if (!sameDatabase) {
    return database.hasBetween(...ENCRYPTED_CHUNKS);
  }
  return ((await database.info())?.doc_count ?? 0) > 0;
}

async function lookAtRules(
  { escrow, state }: LookParts,
  database: Database,
): Promise<readonly Alarm[]> {
  const { member } = state.vault(database.name);
  const closed = escrow.read(database.name).closed !== null;
  const due: Security | undefined = closed
    ? closedRules
    : member === null
      ? undefined
      : memberRules(member);
  if (due === undefined) {
    return [];
  }
  if (sameRules(await database.security(), due)) {
    return [];
  }
  await database.secure(due);
  return [rulesAlarm(database.name)];
}

async function lookAtDeletions(
  { state, deletionLimits, now }: LookParts,
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

const nothing: Troubles = { lasting: [], happened: [] };
