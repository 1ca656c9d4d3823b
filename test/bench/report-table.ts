import type { Run } from "./measure.ts";

export type Row = readonly string[];

/** A Markdown table whose columns are padded, so that it also reads as plain text. */
export function table(columns: Row, rows: readonly Row[]): string {
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...rows.map((row) => (row[at] ?? "").length)),
  );
  const line = (row: Row) =>
    `| ${widths.map((width, at) => (row[at] ?? "").padEnd(width)).join(" | ")} |`;
  return [
    line(columns),
    `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`,
    ...rows.map(line),
  ].join("\n");
}

/** The longest pause of a target's event loop, and the number of long ones. */
export function pauseText({ event_loop_delay_ms: delay }: Run): Row {
  return delay === null
    ? ["", ""]
    : [delay.max.toFixed(1), String(delay.pauses_over_10_ms)];
}

export function errorsText({ errors, first_error: first }: Run): string {
  return errors === 0 ? "" : `${errors} (${firstLine(first)})`;
}

function firstLine(text: string | null): string {
  return (text ?? "").replaceAll(/\s+|\|/g, " ").slice(0, 80);
}
