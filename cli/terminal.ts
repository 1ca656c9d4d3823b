import { styleText } from "node:util";
import { readable } from "../core/words.ts";

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

/** Rows with aligned columns, two spaces apart; the last column is cut at the width of the terminal. */
export function alignColumns(
  rows: readonly (readonly Cell[])[],
  width: number = widthOf(),
  stream: Stream = process.stdout,
): readonly string[] {
  const shown = rows.map((row) =>
    row.map((cell) => ({ ...cell, text: harmless(cell.text) })),
  );
  const columns = Math.max(0, ...shown.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(0, ...shown.map((row) => lengthOf(row[column]?.text ?? ""))),
  );
  return shown.map((row) => {
    let used = 0;
    return row
      .map((cell, column) => {
        const isLast = column === row.length - 1;
        const wide = widths[column] ?? 0;
        const text = isLast ? cut(cell.text, width - used) : cell.text;
        used += wide + 2;
        const space = " ".repeat(Math.max(0, wide - lengthOf(text)));
        const painted = paint(cell.tone ?? "plain", text, stream);
        if (cell.right === true) {
          return space + painted;
        }
        return isLast ? painted : painted + space;
      })
      .join("  ")
      .trimEnd();
  });
}

function cut(text: string, room: number): string {
  if (lengthOf(text) <= room || room < 2) {
    return text;
  }
  return `${[...text].slice(0, room - 1).join("")}…`;
}

function lengthOf(text: string): number {
  return [...text].length;
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints one JSON document. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
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
    process.stderr.write(`${lead}${sentence}\n`);
  }
}
