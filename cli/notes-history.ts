import { momentText, parseMoment } from "../supervisor/vaults/moment.ts";
import {
  isBelow,
  readVaultAt,
  readVersions,
  restoreVault,
} from "../supervisor/vaults/vault-past.ts";
import { inZone } from "./local-time.ts";
import { showDifference } from "./notes-difference.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import {
  paint,
  print,
  printAnswer,
  printJson,
  printTable,
} from "./terminal.ts";
import { openPast, type OpenedPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { Failure } from "../core/failure.ts";
import { sizeWords } from "../core/size.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const pathArg = {
  path: {
    type: "positional",
    required: false,
    description: "A note or folder (default: the whole vault)",
  },
} as const;

export const atArg = {
  at: {
    type: "string",
    description: 'A time: "yesterday 18:00", "2026-11-21 18:00", "3 hours ago"',
    valueHint: "time",
  },
} as const;

const TIME_REQUIRED = '--at is required, for example --at "18:00".';

export interface HistoryOptions {
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
    "Show a vault at a time, its differences from now, the versions of a note, or how far the history reaches back.",
  example: 'hearth notes history notes daily --at "yesterday 18:00"',
  args: {
    ...vaultArg,
    ...pathArg,
    ...atArg,
    diff: {
      type: "boolean",
      description:
        "Show the differences between that time and now; for one note, line by line",
    },
    ...passphraseArg,
    ...jsonArg,
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
async function showHistory(options: HistoryOptions): Promise<0> {
  const { vault, path, at, diff, json } = options;
  if (diff === true && at === undefined) {
    throw new UsageError(TIME_REQUIRED);
  }
  const opened = await openPast(
    findStack(options.supervisor),
    vault,
    options.passphraseFile,
  );
  const moment = at === undefined ? undefined : parseMoment(at, Date.now());
  if (diff === true && moment !== undefined) {
    return showDifference(opened, { vault, path, at: moment, json });
  }
  return path === undefined && moment === undefined
    ? showReach(opened, options)
    : showPast(opened, options, moment);
}

async function showReach(
  { source }: OpenedPast,
  { vault, json }: HistoryOptions,
): Promise<0> {
  const { salt: _salt, ...summary } = await source.summary();
  printAnswer(
    json,
    summary,
    `Vault ${vault}: history since ${momentText(summary.from)}; ${summary.versions} earlier versions use ${sizeWords(summary.bytes)}.`,
  );
  return 0;
}

/** The notes below `path` at a time; without a time, the versions of the note at `path`. */
async function showPast(
  { source, cipher }: OpenedPast,
  options: HistoryOptions,
  moment: number | undefined,
): Promise<0> {
  const { vault, path } = options;
  const past = await readVaultAt(source, cipher, moment ?? Date.now());
  const found = [...past.notes.values()].filter(({ note }) =>
    isBelow(note.path, path),
  );
  const single = found.find(({ note }) => note.path === path);
  if (moment === undefined && single !== undefined) {
    return list(await readVersions(source, cipher, single.note._id), options);
  }
  const existing = found.filter(({ note }) => !note.deleted);
  if (path !== undefined && existing.length === 0) {
    throw new Failure(
      `"${path}" not found in vault ${vault} at ${inZone(past.at)}.`,
    );
  }
  if (options.json !== true) {
    print(`Vault ${vault} at ${inZone(past.at)}:`);
  }
  return list(
    existing.toSorted((a, b) => (a.note.path < b.note.path ? -1 : 1)),
    options,
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
  { json: asJson }: HistoryOptions,
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
    printJson(rows);
  } else {
    printTable(
      ["note", "bytes", "from", "until"],
      rows.map((row) => [
        { text: row.path, tone: "strong" },
        { text: row.deleted ? "deleted" : String(row.size), right: true },
        { text: row.since === 0 ? "" : momentText(row.since) },
        { text: row.until === null ? "now" : momentText(row.until) },
      ]),
    );
  }
  return 0;
}

/** Restores a vault, a folder or a note to a time. */
export async function restoreFromHistory(options: HistoryOptions): Promise<0> {
  const { vault, path, at } = options;
  if (at === undefined) {
    throw new UsageError(TIME_REQUIRED);
  }
  const now = Date.now();
  const moment = parseMoment(at, now);
  const { source, cipher } = await openPast(
    findStack(options.supervisor),
    vault,
    options.passphraseFile,
  );
  const restored = await restoreVault(source, cipher, {
    at: moment,
    path,
    now,
  });
  printAnswer(
    options.json,
    restored,
    [
      `Vault ${vault}${path === undefined ? "" : `, ${path}`} restored to ${inZone(restored.at)}: ${restored.written.length} written, ${restored.deleted.length} deleted, ${restored.unchanged} unchanged. Devices receive the changes with their next sync.`,
      ...restored.unreadable.map((id) =>
        paint(
          "warn",
          `Not restored: note ${id} (it is damaged or cannot be decrypted).`,
        ),
      ),
    ].join("\n"),
  );
  return 0;
}
