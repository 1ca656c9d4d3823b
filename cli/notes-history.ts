import { inMegabytes } from "../supervisor/vaults/compaction.ts";
import { parseMoment } from "../supervisor/vaults/moment.ts";
import {
  isBelow,
  readVaultAt,
  restoreVault,
} from "../supervisor/vaults/vault-past.ts";
import { printTable } from "./job-run.ts";
import { showDifference } from "./notes-difference.ts";
import { json, supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { Failure } from "../core/failure.ts";
import { defineVerb, UsageError } from "./verb.ts";

export const pathArg = {
  path: {
    type: "positional",
    required: false,
    description: "A note or a folder; the whole vault otherwise",
  },
} as const;

export const atArg = {
  at: {
    type: "string",
    description: 'A time: "yesterday 18:00", "2026-11-21 18:00", "3 hours ago"',
    valueHint: "time",
  },
} as const;

const NAME_THE_TIME = 'name the time with --at, for example --at "18:00".';
const inZone = (at: number) => new Date(at).toLocaleString();

export interface HistoryWish {
  readonly vault: string;
  readonly path?: string | undefined;
  readonly at?: string | undefined;
  readonly diff?: boolean | undefined;
  readonly passphraseFile?: string | undefined;
  readonly json?: boolean | undefined;
  readonly supervisor?: string | undefined;
}

export const history = defineVerb({
  name: "notes history",
  description:
    "A vault as it was at a time, what differs from it, the versions of a note, or how far back they reach.",
  example: 'hearth notes history notes daily --at "yesterday 18:00"',
  args: {
    ...vaultArg,
    ...pathArg,
    ...atArg,
    diff: {
      type: "boolean",
      description:
        "Show what differs between that time and now; of one note, its lines",
    },
    ...passphraseArg,
    json,
    ...supervisorArg,
  },
  run: async ({ vault, path, at, diff, json, supervisor, ...args }) =>
    showHistory({
      vault,
      path,
      at,
      diff,
      json,
      supervisor,
      passphraseFile: args["passphrase-file"],
    }),
});

/** Lists a vault as it was at a time, the versions of one note, or how far the history reaches back. */
async function showHistory(wish: HistoryWish): Promise<0> {
  const { vault, path, at } = wish;
  if (wish.diff === true && at === undefined) {
    throw new UsageError(NAME_THE_TIME);
  }
  const opened = await openPast(
    findStack(wish.supervisor),
    vault,
    wish.passphraseFile,
  );
  const { source, cipher } = opened;
  if (wish.diff === true && at !== undefined) {
    return showDifference(opened, {
      vault,
      path,
      at: parseMoment(at, Date.now()),
      json: wish.json,
    });
  }
  if (path === undefined && at === undefined) {
    const { salt: _salt, ...summary } = await source.summary();
    print(
      wish.json === true
        ? JSON.stringify(summary, null, 2)
        : `Vault ${vault} can be read as it was since ${inZone(summary.from)}; ${summary.versions} earlier versions take up ${inMegabytes(summary.bytes)}.`,
    );
    return 0;
  }
  const past = await readVaultAt(
    source,
    cipher,
    at === undefined ? Date.now() : parseMoment(at, Date.now()),
  );
  const found = [...past.notes.values()].filter(({ note }) =>
    isBelow(note.path, path),
  );
  const single = found.find(({ note }) => note.path === path);
  if (at === undefined && single !== undefined) {
    const versions = await source.versions(single.note._id);
    return list(
      await Promise.all(
        versions.map(async ({ doc, since, until }) => {
          const note = await cipher.read(doc);
          return { note: note!, since, until };
        }),
      ),
      wish,
    );
  }
  const there = found.filter(({ note }) => !note.deleted);
  if (path !== undefined && there.length === 0) {
    throw new Failure(
      `there was no "${path}" in vault ${vault} at ${inZone(past.at)}.`,
    );
  }
  if (wish.json !== true) {
    print(`Vault ${vault} at ${inZone(past.at)}:`);
  }
  return list(
    there.toSorted((a, b) => (a.note.path < b.note.path ? -1 : 1)),
    wish,
  );
}

function list(
  versions: readonly {
    readonly note: {
      readonly path: string;
      readonly size: number;
      readonly deleted: boolean;
      readonly _rev: string;
    };
    readonly since: number;
    readonly until: number | null;
  }[],
  { json: asJson }: HistoryWish,
): 0 {
  const rows = versions.map(({ note, since, until }) => ({
    path: note.path,
    rev: note._rev,
    size: note.size,
    deleted: note.deleted,
    since,
    until,
  }));
  if (asJson === true) {
    print(JSON.stringify(rows, null, 2));
  } else {
    printTable(
      ["note", "bytes", "from", "until"],
      rows.map((row) => [
        { text: row.path, tone: "strong" },
        { text: row.deleted ? "deleted" : String(row.size), right: true },
        { text: row.since === 0 ? "" : inZone(row.since) },
        { text: row.until === null ? "now" : inZone(row.until) },
      ]),
    );
  }
  return 0;
}

/** Writes a vault, a folder or a note as it was at a time. */
export async function restoreFromHistory(wish: HistoryWish): Promise<0> {
  const { vault, path, at } = wish;
  if (at === undefined) {
    throw new UsageError(NAME_THE_TIME);
  }
  const now = Date.now();
  const moment = parseMoment(at, now);
  const { source, cipher } = await openPast(
    findStack(wish.supervisor),
    vault,
    wish.passphraseFile,
  );
  const restored = await restoreVault(source, cipher, {
    at: moment,
    path,
    now,
  });
  if (wish.json === true) {
    print(JSON.stringify(restored, null, 2));
  } else {
    print(
      `Vault ${vault}${path === undefined ? "" : `, ${path},`} is as it was at ${inZone(restored.at)}: ${restored.written.length} written, ${restored.deleted.length} deleted, ${restored.unchanged} unchanged. Devices follow with their next sync.`,
    );
  }
  return 0;
}
