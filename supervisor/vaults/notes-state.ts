import { readFileSync, renameSync } from "node:fs";
import { z } from "zod";
import type { Alarm } from "../alerts/alarm.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { codeOf, isFullDisk } from "../../core/failure.ts";
import { vaultSpace } from "./space.ts";

const vaultState = z.looseObject({
  /** `instance_start_time` as last seen: another one is another database of the same name. */
  instance: z.string().nullable().default(null),
  /** The backup that this database was restored from. */
  restoredFrom: z.string().nullable().default(null),
  /** The user with access; null for a database that was not created by `hearth notes add`. */
  member: z.string().nullable().default(null),
  /** The change up to which deletions are counted, and the recent counts. */
  deletionsSince: z.string().nullable().default(null),
  deletions: z
    .array(
      z.looseObject({ at: z.number(), deleted: z.number(), made: z.number() }),
    )
    .default([]),
  /** The last compaction by the supervisor, milliseconds since 1970. */
  compactedAt: z.number().nullable().default(null),
  /** Bytes without reclaimable space, once a day. */
  sizes: z
    .array(z.looseObject({ at: z.number(), value: z.number() }))
    .default([]),
  /** The last measurement of its use of space; null on a CouchDB. */
  space: vaultSpace.nullable().default(null),
  /** When each open conflict was first seen, by document. */
  conflicts: z.record(z.string(), z.number()).default({}),
});

const eventAlarm = z.looseObject({
  alarm: z.looseObject({ fingerprint: z.string() }),
  /** When it expires, milliseconds since 1970. */
  until: z.number(),
});

const notesState = z.looseObject({
  /** Whether the first vault was created; it is not created again after a removal. */
  firstVaultMade: z.boolean().default(false),
  vaults: z.record(z.string(), vaultState).default({}),
  standing: z.array(eventAlarm).default([]),
});

type StoredState = z.output<typeof notesState>;
export type VaultState = Readonly<z.output<typeof vaultState>>;
interface EventAlarm {
  readonly alarm: Alarm;
  readonly until: number;
}

/** The supervisor's state of the notes store, written to disk with every change unless the disk is full. */
export interface NotesState {
  readonly vault: (name: string) => VaultState;
  readonly known: () => readonly string[];
  readonly change: (name: string, change: Partial<VaultState>) => void;
  readonly forget: (name: string) => void;
  readonly firstVaultCreated: () => boolean;
  readonly recordFirstVault: () => void;
  /** Alarms about events, raised until they expire. */
  readonly eventAlarms: () => readonly EventAlarm[];
  readonly setEventAlarms: (alarms: readonly EventAlarm[]) => void;
}

/** Opens the state file; an unreadable one is renamed and reported. */
export function openNotesState(
  path: string,
  say: (sentence: string) => void,
): NotesState {
  let state = read(path, say);
  let text = JSON.stringify(state);
  const save = (next: StoredState): void => {
    const nextText = JSON.stringify(next);
    try {
      if (nextText !== text) {
        writeDurably(path, `${nextText}\n`);
        text = nextText;
      }
    } catch (error) {
      // Written with a later change; the vaults are watched from memory until then.
      if (!isFullDisk(error)) {
        throw error;
      }
    }
    state = next;
  };
  const vault = (name: string): VaultState =>
    (Object.hasOwn(state.vaults, name) ? state.vaults[name] : undefined) ??
    vaultState.parse({});
  return {
    vault,
    known: () => Object.keys(state.vaults),
    change: (name, change) =>
      save({
        ...state,
        vaults: { ...state.vaults, [name]: { ...vault(name), ...change } },
      }),
    forget: (name) => {
      const { [name]: _gone, ...vaults } = state.vaults;
      save({ ...state, vaults });
    },
    firstVaultCreated: () => state.firstVaultMade,
    recordFirstVault: () => save({ ...state, firstVaultMade: true }),
    eventAlarms: () => state.standing as unknown as readonly EventAlarm[],
    setEventAlarms: (next) =>
      save({
        ...state,
        standing: next.map((each) => ({ ...each, alarm: { ...each.alarm } })),
      }),
  };
}

/** Throws if the file is unreadable or invalid. */
export function readNotesState(path: string): StoredState {
  return notesState.parse(JSON.parse(readFileSync(path, "utf8")));
}

function read(path: string, say: (sentence: string) => void): StoredState {
  try {
    return readNotesState(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return notesState.parse({});
    }
    if (codeOf(error) !== undefined) {
      throw error;
    }
    renameSync(path, `${path}.broken`);
    say(
      `${path} could not be read and was renamed to ${path}.broken: the state of the vaults is collected again.`,
    );
    return notesState.parse({});
  }
}
