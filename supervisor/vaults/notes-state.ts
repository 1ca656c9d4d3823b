import { readFileSync, renameSync } from "node:fs";
import { z } from "zod";
import type { Alarm } from "../alerts/alarm.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { codeOf, isFullDisk } from "../../core/failure.ts";
import { vaultSpace } from "./space.ts";

const vaultState = z.looseObject({
  /** `instance_start_time` as last seen: another one is another database of the same name. */
  instance: z.string().nullable().default(null),
  /** The user whose devices may in; null for a database that was not made by `hearth notes add`. */
  member: z.string().nullable().default(null),
  /** How far deletions are counted, and what was counted lately. */
  deletionsSince: z.string().nullable().default(null),
  deletions: z
    .array(
      z.looseObject({ at: z.number(), deleted: z.number(), made: z.number() }),
    )
    .default([]),
  /** When it was last compacted by us, milliseconds since 1970. */
  compactedAt: z.number().nullable().default(null),
  /** Bytes without what a compaction frees, once a day. */
  sizes: z
    .array(z.looseObject({ at: z.number(), value: z.number() }))
    .default([]),
  /** What took up the room when it was last measured; null on a CouchDB. */
  space: vaultSpace.nullable().default(null),
  /** When each open conflict was first seen, by document. */
  conflicts: z.record(z.string(), z.number()).default({}),
});

const standing = z.looseObject({
  alarm: z.looseObject({ fingerprint: z.string() }),
  /** When it ends by itself, milliseconds since 1970. */
  until: z.number(),
});

const notesState = z.looseObject({
  /** Whether the first vault was made; one that was removed is not made again. */
  firstVaultMade: z.boolean().default(false),
  vaults: z.record(z.string(), vaultState).default({}),
  standing: z.array(standing).default([]),
});

type StoredState = z.output<typeof notesState>;
export type VaultState = Readonly<z.output<typeof vaultState>>;
export interface Standing {
  readonly alarm: Alarm;
  readonly until: number;
}

/** What the supervisor knows of the notes store between two looks; kept on disk, every change at once while there is room. */
export interface NotesState {
  readonly vault: (name: string) => VaultState;
  readonly known: () => readonly string[];
  readonly change: (name: string, change: Partial<VaultState>) => void;
  readonly forget: (name: string) => void;
  readonly firstVaultMade: () => boolean;
  readonly rememberFirstVault: () => void;
  /** Alarms about something that happened, which stand until their time is over. */
  readonly standing: () => readonly Standing[];
  readonly testbed: (standing: readonly Standing[]) => void;
}

/** Opens the state file; one that cannot be read is put aside and said. */
export function openNotesState(
  path: string,
  say: (sentence: string) => void,
): NotesState {
  let state = read(path, say);
  let text = JSON.stringify(state);
  const save = (next: StoredState): void => {
    const nextText = JSON.stringify(next);
    state = next;
    if (nextText === text) {
      return;
    }
    try {
      writeDurably(path, `${nextText}\n`);
      text = nextText;
    } catch (error) {
      // Written with a later change or look; the vaults are watched from memory until then.
      if (!isFullDisk(error)) {
        throw error;
      }
    }
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
    firstVaultMade: () => state.firstVaultMade,
    rememberFirstVault: () => save({ ...state, firstVaultMade: true }),
    standing: () => state.standing as unknown as readonly Standing[],
    testbed: (next) =>
      save({
        ...state,
        standing: next.map((each) => ({ ...each, alarm: { ...each.alarm } })),
      }),
  };
}

/** Throws when the file cannot be read or is not as it was written. */
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
      `${path} could not be read and was put aside as ${path}.broken: what is known of the vaults is gathered anew.`,
    );
    return notesState.parse({});
  }
}
