import { sizeWords } from "../../../core/size.ts";
import type { TextOfVersion } from "../../../supervisor/vaults/conflict-texts.ts";
import type {
  Conflict,
  ConflictVersion,
} from "../../../supervisor/vaults/conflicts.ts";
import { canKeepBoth } from "../../../supervisor/vaults/keep-both.ts";
import { growthWords } from "../../../supervisor/vaults/growth.ts";
import { rowsOf } from "../../../supervisor/vaults/space.ts";
import type { VaultGrowth } from "../../../supervisor/vaults/vault-acts.ts";
import type { Field } from "../field.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, grouped, moment, momentFrom } from "../../../core/words.ts";
import { compareTexts, type Comparison } from "./compare.ts";
import { deviceRows } from "./device-rows.ts";
import {
  encryptionWords,
  seedWords,
  stateWords,
  problemsOf,
  type VaultFacts,
} from "./notes-view.ts";

export type ConflictFacts = Conflict & {
  /** Empty where no text can be read. */
  readonly texts: readonly TextOfVersion[];
};

export type VaultPageFacts = VaultFacts & {
  /** The conflicts of this page. */
  readonly conflicts: readonly ConflictFacts[];
  /** Number of conflicts on previous pages. */
  readonly from: number;
  /** Number of open conflicts; a text explains why it is unknown. */
  readonly open: number | string;
  /** Null where its database is missing. */
  readonly growth: VaultGrowth | null;
  readonly setupFields: readonly Field[];
  readonly rotateFields: readonly Field[];
  /** The form that is shown again, with its mistakes. */
  readonly formOpen: "setup-uri" | "rotate" | null;
  readonly timeZone: string;
  readonly now: number;
};

export const CONFLICTS_ON_PAGE = 5;

/** One vault: problems, conflicts, devices and actions. */
export function viewVault(facts: VaultPageFacts) {
  const { view, roster, now, timeZone } = facts;
  const { vault } = view;
  const problems = problemsOf(facts, now);
  const [first] = problems;
  const untroubled: Look = view.state === "foreign" ? "none" : "ok";
  return {
    title: first?.text ?? `Vault ${vault} is healthy.`,
    look: first?.look ?? untroubled,
    vault,
    path: `/notes/${encodeURIComponent(vault)}`,
    problems: problems.slice(1),
    state: stateWords(view).state,
    isHere: view.state !== "gone",
    isOurs: view.state !== "foreign",
    closed:
      facts.closedSince === null ? null : moment(facts.closedSince, timeZone),
    url: view.url,
    user: view.user,
    figures: figuresOf(facts),
    space: facts.growth === null ? null : viewSpace(facts.growth, timeZone),
    ...viewConflicts(facts),
    devices: roster === null ? [] : deviceRows(roster, now),
    remarks: roster?.remarks ?? [],
    setupFields: facts.setupFields,
    rotateFields: facts.rotateFields,
    formOpen: facts.formOpen,
  };
}

function figuresOf(facts: VaultPageFacts) {
  const { view, now } = facts;
  return [
    {
      name: "Documents",
      value: grouped(view.documents),
      note: encryptionWords(facts.encrypted),
    },
    {
      name: "Size",
      value: sizeWords(view.fileBytes),
      note: `compaction would free ${sizeWords(view.reclaimableBytes)}`,
    },
    {
      name: "Compacted",
      value: view.compactedAt === null ? "never" : ago(view.compactedAt, now),
      note: "by the compaction job",
    },
    {
      name: "Security seed",
      value: seedWords(facts),
      note: view.seeds > 1 ? `${view.seeds} seen so far` : "",
    },
  ];
}

/** The conflicts of this page, and links to the others. */
function viewConflicts(facts: VaultPageFacts) {
  const { conflicts, from, open, timeZone, now } = facts;
  return {
    whyNoConflicts: typeof open === "string" ? open : null,
    conflicts: conflicts.map((conflict, index) =>
      viewConflict(conflict, from + index, timeZone, now),
    ),
    newer: from === 0 ? null : Math.max(0, from - CONFLICTS_ON_PAGE),
    older:
      typeof open === "number" && from + conflicts.length < open
        ? from + conflicts.length
        : null,
    openCount: typeof open === "number" ? open : 0,
  };
}

function viewSpace({ growth, space }: VaultGrowth, timeZone: string) {
  return {
    growth: growthWords(growth),
    at: space === null ? null : moment(space.at, timeZone),
    encrypted: space !== null && space.folders === null,
    rows:
      space === null
        ? []
        : rowsOf(space).map(({ name, note, bytes, share }) => ({
            name,
            note,
            share,
            size: sizeWords(bytes),
          })),
  };
}

/** Versions are called A, B, C …: devices show A. */
function viewConflict(
  conflict: ConflictFacts,
  place: number,
  timeZone: string,
  now: number,
) {
  const versions = conflict.versions.map((version, index) => ({
    ...version,
    letter: String.fromCharCode(65 + (index % 26)),
  }));
  const newest = newestOf(conflict.versions);
  const [shown, ...others] = versions;
  const textOf = (rev: string | undefined) =>
    conflict.texts.find((text) => text.rev === rev);
  return {
    place: place + 1,
    document: conflict.document,
    path: conflict.path,
    device: conflict.device,
    since: ago(conflict.firstSeen, now),
    newest: newest?.rev ?? null,
    canKeepBoth: canKeepBoth(
      conflict.document,
      conflict.path,
      conflict.versions,
    ),
    versions: versions.map((version) => ({
      rev: version.rev,
      letter: version.letter,
      edit: Number.parseInt(version.rev, 10),
      mark: version.rev.split("-")[1]?.slice(0, 6) ?? "",
      written:
        version.mtime === null
          ? "encrypted"
          : momentFrom(now, version.mtime, timeZone),
      isNewest: version.rev === newest?.rev,
      size: version.bytes === null ? "–" : sizeWords(version.bytes),
      wins: version.wins,
      deleted: version.deleted,
    })),
    comparisons: others.map((other) => ({
      letters: [shown?.letter ?? "A", other.letter] as const,
      ...compared(textOf(shown?.rev), textOf(other.rev), [
        shown?.letter ?? "A",
        other.letter,
      ]),
    })),
  };
}

/** The newest version, where the times are known and differ. */
function newestOf(
  versions: readonly ConflictVersion[],
): ConflictVersion | undefined {
  if (versions.some(({ mtime }) => mtime === null)) {
    return undefined;
  }
  const latest = Math.max(...versions.map(({ mtime }) => Number(mtime)));
  const found = versions.filter(({ mtime }) => mtime === latest);
  return found.length === 1 ? found[0] : undefined;
}

function compared(
  left: TextOfVersion | undefined,
  right: TextOfVersion | undefined,
  letters: readonly [string, string],
): { readonly note: string; readonly comparison: Comparison | null } {
  const sides = [left, right];
  const kinds = sides.map((side) => side?.kind);
  const none = (note: string) => ({ note, comparison: null });
  if (kinds.includes(undefined) || kinds.includes("encrypted")) {
    return none(
      "The versions are encrypted and cannot be read here. Open the note on a device, or decide by size and edit.",
    );
  }
  if (kinds.includes("incomplete")) {
    return none(
      "A version is incomplete. Sync the device that wrote it, then reload this page.",
    );
  }
  if (kinds.includes("large")) {
    return none(
      "The versions are too long to compare here. Open them on a device.",
    );
  }
  if (kinds.includes("binary")) {
    return none("The versions are not text. Open them on a device.");
  }
  const texts = sides.map((side) => (side?.kind === "text" ? side.text : ""));
  const comparison = compareTexts(texts[0] ?? "", texts[1] ?? "");
  const deleting = letters.filter((_letter, at) => kinds[at] === "deleted");
  const notes = [
    ...deleting.map((letter) => `Version ${letter} deletes the note.`),
    ...(comparison.kind === "same" && deleting.length === 0
      ? ["They say the same; only their times differ."]
      : []),
    ...(comparison.kind === "all-different"
      ? [
          "The versions have too little in common to compare here. Open them on a device.",
        ]
      : []),
    ...(comparison.kind === "rows" && comparison.cut
      ? ["Truncated: there are more differences."]
      : []),
  ];
  return { note: notes.join(" "), comparison };
}
