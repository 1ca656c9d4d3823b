import { shellQuoted } from "../../../core/shell.ts";
import { sizeWords } from "../../../core/size.ts";
import { counted, grouped, momentFrom } from "../../../core/words.ts";
import { differingFiles } from "../../../supervisor/vaults/note-difference.ts";
import { momentText } from "../../../supervisor/vaults/moment.ts";
import { DECRYPT_SCRIPT } from "../decrypt.ts";
import { compareTexts } from "./compare.ts";
import type { HistoryFacts, HistoryQuery } from "./history-reader.ts";

type HistoryPageFacts = HistoryFacts & {
  readonly vault: string;
  readonly query: HistoryQuery;
  /** A time that cannot be shown, and why. */
  readonly mistake?: { readonly typed: string; readonly text: string };
  readonly timeZone: string;
  readonly now: number;
};

const MAX_ROWS = 200;

/** An earlier state of a vault: its differences from now, and how to restore it. */
export function viewHistory(facts: HistoryPageFacts) {
  const { vault, query, summary, shown, timeZone, now } = facts;
  const path = `/notes/${encodeURIComponent(vault)}`;
  const since = momentFrom(now, summary.from, timeZone);
  const difference = shown.kind === "difference" ? viewDifference(facts) : null;
  return {
    title: difference?.title ?? `History of ${vault} since ${since}.`,
    vault,
    path,
    since,
    timeZone,
    difference,
    kept: `earlier versions: ${grouped(summary.versions)}, ${sizeWords(summary.bytes)}`,
    encrypted: shown.kind === "encrypted",
    decryption:
      shown.kind === "encrypted" && query.at !== undefined
        ? {
            at: query.at,
            time: inputOf(query.at),
            script: DECRYPT_SCRIPT,
            history: `/api/notes/${encodeURIComponent(vault)}/history`,
          }
        : null,
    typed: {
      at:
        query.at === undefined
          ? (facts.mistake?.typed ?? "")
          : momentText(query.at),
      mistake: facts.mistake?.text,
      path: query.path ?? "",
    },
    commands: {
      show: `hearth notes history ${vault} ${optionsOf(query)} --diff`,
      restore: `hearth notes restore ${vault} ${optionsOf(query)}`,
    },
  };
}

function optionsOf({ at, path }: HistoryQuery): string {
  const time = at === undefined ? "yesterday 18:00" : inputOf(at);
  return [
    ...(path === undefined ? [] : [shellQuoted(path)]),
    `--at ${shellQuoted(time)}`,
  ].join(" ");
}

function viewDifference(facts: HistoryPageFacts) {
  const { vault, query, shown, timeZone, now } = facts;
  if (shown.kind !== "difference") {
    return null;
  }
  const { difference, texts, versions } = shown;
  const { past, changed, added, unchanged } = difference;
  const at = momentFrom(now, past.at, timeZone);
  const what = query.path ?? vault;
  const rows = differingFiles(difference).map((file) => ({
    ...file,
    size: sizeWords(file.size),
  }));
  const wasThere = changed.length + unchanged > 0;
  return {
    title: !wasThere
      ? `${what} did not exist at ${at}.`
      : rows.length === 0
        ? `${what} is unchanged since ${at}.`
        : `${counted(rows.length, "file")} changed since ${at}.`,
    at,
    atMs: past.at,
    what,
    unchanged: grouped(unchanged),
    restorable: wasThere && rows.length > 0,
    question: `${what} returns to its state of ${at}: ${counted(changed.length, "file is", "files are")} written, ${added.length} deleted. Devices update on their next sync. This can be undone the same way.`,
    rows: rows
      .slice(0, MAX_ROWS)
      .map((row) => ({ ...row, link: linkTo(past.at, row.path) })),
    more: Math.max(0, rows.length - MAX_ROWS),
    comparison: texts === null ? null : compareTexts(...texts),
    versions: versions.map((version) => ({
      since:
        version.since === 0
          ? "the beginning"
          : momentFrom(now, version.since, timeZone),
      until:
        version.until === null
          ? "now"
          : momentFrom(now, version.until, timeZone),
      size: version.deleted ? "deleted" : sizeWords(version.bytes),
      link: linkTo(Math.max(version.since, 1), query.path ?? ""),
    })),
  };
}

function linkTo(at: number, path: string): string {
  return `?${new URLSearchParams({ at: inputOf(at), path }).toString()}`;
}

/** For addresses and commands, which may be used in another time zone. */
function inputOf(at: number): string {
  return new Date(at).toISOString();
}
