import { diffLines, diffWordsWithSpace } from "diff";

/** Part of a line; marked where the two versions differ. */
export interface Piece {
  readonly text: string;
  readonly marked: boolean;
}

/** Two lines side by side; null where one version has none. A gap replaces equal lines. */
type Row =
  | {
      readonly kind: "same" | "changed";
      readonly left: readonly Piece[] | null;
      readonly right: readonly Piece[] | null;
    }
  | { readonly kind: "gap"; readonly lines: number };

export type Comparison =
  | { readonly kind: "same" }
  /** `cut`: there are more differences than `rows` contains. */
  | {
      readonly kind: "rows";
      readonly rows: readonly Row[];
      readonly cut: boolean;
    }
  /** The texts differ too much to be compared in reasonable time. */
  | { readonly kind: "all-different" };

const AROUND = 3;
const MAX_ROWS = 60;
const MAX_LINE_LENGTH = 300;
/** For lines, and for words of a line: the cost grows with the square. */
const MAX_EDITS = 500;
const MAX_WORD_EDITS = 200;

/** Compares two texts by lines and marks differing words; equal lines are included only around a difference. */
export function compareTexts(left: string, right: string): Comparison {
  const changes = diffLines(left, right, {
    ignoreNewlineAtEof: true,
    stripTrailingCr: true,
    maxEditLength: MAX_EDITS,
  });
  if (changes === undefined) {
    return { kind: "all-different" };
  }
  if (changes.every(({ added, removed }) => !added && !removed)) {
    return { kind: "same" };
  }
  const rows: Row[] = [];
  for (const [index, { value, added, removed }] of changes.entries()) {
    // Comparing words is expensive: skipped for rows that are not shown.
    if (rows.length > MAX_ROWS) {
      break;
    }
    const lines = linesOf(value);
    const next = changes[index + 1];
    if (removed) {
      rows.push(
        ...pairs(lines, next?.added === true ? linesOf(next.value) : []),
      );
    } else if (!added) {
      rows.push(...shorten(lines, index === 0, next === undefined));
    } else if (changes[index - 1]?.removed !== true) {
      rows.push(...pairs([], lines));
    }
  }
  return {
    kind: "rows",
    rows: rows.slice(0, MAX_ROWS),
    cut: rows.length > MAX_ROWS,
  };
}

function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function pairs(
  left: readonly string[],
  right: readonly string[],
): readonly Row[] {
  const length = Math.min(MAX_ROWS + 1, Math.max(left.length, right.length));
  return Array.from({ length }, (_, at) => {
    const [one, other] = [left[at], right[at]];
    if (one === undefined || other === undefined) {
      return {
        kind: "changed",
        left: one === undefined ? null : whole(one, true),
        right: other === undefined ? null : whole(other, true),
      };
    }
    const words =
      Math.max(one.length, other.length) > MAX_LINE_LENGTH
        ? undefined
        : diffWordsWithSpace(one, other, { maxEditLength: MAX_WORD_EDITS });
    const side = (gone: "added" | "removed") =>
      words
        ?.filter((word) => !word[gone])
        .map(({ value, added, removed }) => ({
          text: value,
          marked: added || removed,
        }));
    return {
      kind: "changed",
      left: side("added") ?? whole(one, true),
      right: side("removed") ?? whole(other, true),
    };
  });
}

function shorten(
  lines: readonly string[],
  first: boolean,
  last: boolean,
): readonly Row[] {
  const [before, after] = [first ? 0 : AROUND, last ? 0 : AROUND];
  const same = (line: string): Row => {
    const pieces = whole(line, false);
    return { kind: "same", left: pieces, right: pieces };
  };
  const hidden = lines.length - before - after;
  if (hidden <= 1) {
    return lines.map(same);
  }
  return [
    ...lines.slice(0, before).map(same),
    { kind: "gap", lines: hidden },
    ...lines.slice(lines.length - after).map(same),
  ];
}

function whole(line: string, marked: boolean): readonly Piece[] {
  const cut = line.length > MAX_LINE_LENGTH;
  return [{ text: cut ? `${line.slice(0, MAX_LINE_LENGTH)} …` : line, marked }];
}
