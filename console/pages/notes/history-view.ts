import { sizeWords } from "../../../core/size.ts";
import { grouped, moment } from "../../../core/words.ts";
import { differingFiles } from "../../../supervisor/vaults/note-difference.ts";
import { DECRYPT_SCRIPT } from "../decrypt.ts";
import { compareTexts, type Comparison } from "./compare.ts";
import type { HistoryFacts, HistoryWish } from "./history-look.ts";

export type HistoryPageFacts = HistoryFacts & {
  readonly vault: string;
  readonly wish: HistoryWish;
  readonly timeZone: string;
};

const MOST_ROWS = 200;

/** A vault as it was: what differs from now, with the way back. */
export function viewHistory(facts: HistoryPageFacts) {
  const { vault, wish, summary, shown, timeZone } = facts;
  const path = `/notes/${encodeURIComponent(vault)}`;
  const since = moment(summary.from, timeZone);
  const difference = shown.kind === "difference" ? viewDifference(facts) : null;
  return {
    title:
      difference?.title ?? `${vault} can be read as it was since ${since}.`,
    vault,
    path,
    since,
    timeZone,
    difference,
    kept: `earlier versions: ${grouped(summary.versions)}, ${sizeWords(summary.bytes)}`,
    encrypted: shown.kind === "encrypted",
    decryption:
      shown.kind === "encrypted" && wish.at !== undefined
        ? {
            at: wish.at,
            time: inputOf(wish.at),
            script: DECRYPT_SCRIPT,
            history: `/api/notes/${encodeURIComponent(vault)}/history`,
          }
        : null,
    typed: {
      at: wish.at === undefined ? "" : inputOf(wish.at),
      path: wish.path ?? "",
    },
    commands: {
      show: `hearth notes history ${vault} ${optionsOf(wish)} --diff`,
      restore: `hearth notes restore ${vault} ${optionsOf(wish)}`,
    },
  };
}

function optionsOf({ at, path }: HistoryWish): string {
  const time = at === undefined ? "yesterday 18:00" : inputOf(at);
  return [
    ...(path === undefined ? [] : [quoted(path)]),
    `--at ${quoted(time)}`,
  ].join(" ");
}

function viewDifference({ vault, wish, shown, timeZone }: HistoryPageFacts) {
  if (shown.kind !== "difference") {
    return null;
  }
  const { difference, texts, versions } = shown;
  const { past, changed, added, unchanged } = difference;
  const at = moment(past.at, timeZone);
  const what = wish.path ?? vault;
  const rows = differingFiles(difference).map((file) => ({
    ...file,
    size: sizeWords(file.size),
  }));
  const wasThere = changed.length + unchanged > 0;
  return {
    title: !wasThere
      ? `There was no ${what} at ${at}.`
      : rows.length === 0
        ? `${what} is as it was at ${at}.`
        : `${grouped(rows.length)} ${rows.length === 1 ? "file differs" : "files differ"} from ${at}.`,
    at,
    atMs: past.at,
    what,
    unchanged: grouped(unchanged),
    restorable: wasThere && rows.length > 0,
    question: `${what} becomes what it was at ${at}: ${changed.length} ${changed.length === 1 ? "file is" : "files are"} written, ${added.length} deleted. The devices follow with their next sync; it can be undone in the same way.`,
    rows: rows
      .slice(0, MOST_ROWS)
      .map((row) => ({ ...row, link: linkTo(past.at, row.path) })),
    more: Math.max(0, rows.length - MOST_ROWS),
    comparison: texts === null ? null : comparisonOf(texts),
    versions: versions.map((version) => ({
      since:
        version.since === 0 ? "the beginning" : moment(version.since, timeZone),
      until: version.until === null ? "now" : moment(version.until, timeZone),
      size: version.deleted ? "deleted" : sizeWords(version.bytes),
      link: linkTo(Math.max(version.since, 1), wish.path ?? ""),
    })),
  };
}

function comparisonOf([then, now]: readonly [string, string]): Comparison {
  return compareTexts(then, now);
}

function linkTo(at: number, path: string): string {
  return `?${new URLSearchParams({ at: inputOf(at), path }).toString()}`;
}

/** As the field takes it, with the zone. */
function inputOf(at: number): string {
  return new Date(at).toISOString();
}

/** For a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
