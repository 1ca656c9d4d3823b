import { stripVTControlCharacters, styleText } from "node:util";
import { readable } from "../core/words.ts";
import { sum } from "../core/sum.ts";

export type Stream = NodeJS.WriteStream;
export type Tone =
  "plain" | "strong" | "soft" | "ok" | "warn" | "bad" | "ember";

const FORMATS = {
  plain: "reset",
  strong: "bold",
  soft: "dim",
  ok: "green",
  warn: "yellow",
  bad: "red",
  ember: "cyan",
} as const satisfies Record<Tone, Parameters<typeof styleText>[0]>;

/** Coloured text if the stream is a terminal and NO_COLOR is not set. */
export function paint(
  tone: Tone,
  text: string,
  stream: Stream = process.stdout,
): string {
  return tone === "plain" || text === ""
    ? text
    : styleText(FORMATS[tone], text, { stream });
}

export function widthOf(stream: Stream = process.stdout): number {
  return stream.isTTY && stream.columns > 0 ? stream.columns : Infinity;
}

export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
  readonly right?: boolean;
}

/** A name or message without control characters: those that a key's holder chose would move the cursor or hide other lines. */
export function harmless(text: string): string {
  return readable(text).replace(/\p{Cc}/gu, "\uFFFD");
}

/** All control characters but those of lines, of tabs and of {@link paint}. */
const CONTROLS = /(?![\n\t]|\u001B\[(?:[0-2]|22|3[1-9])m)\p{Cc}/gu;

function withoutControls(text: string): string {
  return text.replace(CONTROLS, "\uFFFD");
}

/** Rows with aligned columns, two spaces apart; where they are wider than the terminal, the widest columns of text are cut. */
export function alignColumns(
  rows: readonly (readonly Cell[])[],
  width: number = widthOf(),
  stream: Stream = process.stdout,
): readonly string[] {
  const shown = rows.map((row) =>
    row.map((cell) => ({ ...cell, text: harmless(cell.text) })),
  );
  const columns = Math.max(0, ...shown.map((row) => row.length));
  const widths = fitting(
    Array.from({ length: columns }, (_, column) =>
      Math.max(0, ...shown.map((row) => lengthOf(row[column]?.text ?? ""))),
    ),
    (column) => shown.some((row) => row[column]?.right === true),
    width - 2 * Math.max(0, columns - 1),
  );
  return shown.map((row) =>
    row
      .map((cell, column) => {
        const isLast = column === row.length - 1;
        const wide = widths[column] ?? 0;
        const text = cut(cell.text, wide);
        const space = " ".repeat(Math.max(0, wide - lengthOf(text)));
        const painted = paint(cell.tone ?? "plain", text, stream);
        if (cell.right === true) {
          return space + painted;
        }
        return isLast ? painted : painted + space;
      })
      .join("  ")
      .trimEnd(),
  );
}

/** Rows under soft headings; where they do not fit otherwise, without the columns of `optional`, the first of which is left out first. */
export function alignTable(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  optional: readonly string[] = [],
  width: number = widthOf(),
): readonly string[] {
  const head = headings.map((text): Cell => ({ text, tone: "soft" }));
  const lines = alignColumns([head, ...rows], width);
  const [least, ...others] = optional;
  const column = headings.findIndex((heading) => heading === least);
  if (
    column === -1 ||
    lines.every((line) => lengthOf(stripVTControlCharacters(line)) <= width)
  ) {
    return lines;
  }
  return alignTable(
    headings.toSpliced(column, 1),
    rows.map((row) => row.toSpliced(column, 1)),
    others,
    width,
  );
}

/** A column is not cut below this: names would be lost. */
const MIN_WIDTH = 12;

/** The widths of columns, of which the widest are as narrow as needed for all to fit; those of numbers stay. */
function fitting(
  widths: readonly number[],
  hasNumbers: (column: number) => boolean,
  room: number,
): readonly number[] {
  const within = (most: number) =>
    widths.map((wide, column) =>
      hasNumbers(column) ? wide : Math.min(wide, most),
    );
  let most = Math.max(MIN_WIDTH, ...widths);
  while (most > MIN_WIDTH && sum(within(most)) > room) {
    most -= 1;
  }
  return within(most);
}

function cut(text: string, room: number): string {
  if (lengthOf(text) <= room) {
    return text;
  }
  let kept = "";
  for (const letter of lettersOf(text)) {
    if (lengthOf(kept + letter) >= room) {
      break;
    }
    kept += letter;
  }
  return `${kept}…`;
}

const SEGMENTER = new Intl.Segmenter();
/** Ideographs and emoji; https://www.unicode.org/reports/tr11/ calls them wide. */
const WIDE =
  /^(?:[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303F\uFF01-\uFF60]|\p{RGI_Emoji})/v;
const ASCII = /^[\x20-\x7E]*$/;

function lettersOf(text: string): readonly string[] {
  return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}

/** The columns that a text takes in a terminal. */
function lengthOf(text: string): number {
  return ASCII.test(text)
    ? text.length
    : lettersOf(text).reduce(
        (sum, letter) => sum + (WIDE.test(letter) ? 2 : 1),
        0,
      );
}

/** The last column of a line is not narrower than this: it begins on a line of its own instead. */
const MIN_FOLDED = 24;

/** A line of two columns, of which the second continues below its beginning where the terminal is too narrow. */
export function foldLine(line: string, width: number = widthOf()): string {
  const [, lead = "", text = line] = /^( +\S.*? {2,})(\S.*)$/.exec(line) ?? [];
  if (line.length <= width) {
    return line;
  }
  const isBeside = width - lead.length >= MIN_FOLDED;
  const indent = isBeside ? lead.length : lead === "" ? 0 : 4;
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    const longer = last === "" ? word : `${last} ${word}`;
    if (last !== "" && indent + longer.length > width) {
      lines.push(word);
    } else {
      lines[lines.length - 1] = longer;
    }
  }
  const folded = lines.join(`\n${" ".repeat(indent)}`);
  return isBeside || lead === ""
    ? `${lead}${folded}`
    : `  ${lead.trim()}\n${" ".repeat(indent)}${folded}`;
}

/** Prints text, of which parts may have been chosen by others: names, messages, lines of logs. */
export function print(text: string): void {
  printPart(`${text}\n`);
}

/** The same of a part of a line. */
export function printPart(text: string): void {
  process.stdout.write(withoutControls(text));
}

/** Prints one JSON document. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Prints an answer as JSON if that was asked for (`--json`), otherwise as text. */
export function printAnswer(
  json: boolean | undefined,
  answer: unknown,
  text: string,
): void {
  if (json === true) {
    printJson(answer);
  } else {
    print(text);
  }
}

/** Prints a table. */
export function printTable(...table: Parameters<typeof alignTable>): void {
  alignTable(...table).forEach(print);
}

/** How a list is shown as text. */
export interface RowTable<Row> {
  /** Instead of a table without rows. */
  readonly empty: string;
  readonly headings: readonly string[];
  readonly rowOf: (row: Row) => readonly Cell[];
}

/** Prints rows as JSON if that was asked for (`--json`), otherwise as a table. */
export function printList<Row>(
  json: boolean | undefined,
  rows: readonly Row[],
  { empty, headings, rowOf }: RowTable<Row>,
): void {
  const table = () => alignTable(headings, rows.map(rowOf)).join("\n");
  printAnswer(json, rows, rows.length === 0 ? empty : table());
}

/** Prints one JSON document of a stream, on one line. */
export function printJsonLine(value: unknown): void {
  print(JSON.stringify(value));
}

/** Prints errors to standard error, one sentence per line; those that start with two spaces continue the one before. */
export function complain(sentences: readonly string[]): void {
  for (const sentence of sentences) {
    const continued = sentence.startsWith("  ");
    const lead = continued ? "" : `${paint("bad", "hearth:", process.stderr)} `;
    process.stderr.write(`${lead}${withoutControls(sentence)}\n`);
  }
}
