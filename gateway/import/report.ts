import type { Notes, Remark } from "./import-notes.ts";

export interface ImportTotals {
  readonly dryRun: boolean;
  readonly payers: number;
  /** Of all keys. */
  readonly dollars: number;
}

/** The report of the import as a table for the terminal. */
export function report(notes: Notes, brought: ImportTotals): string {
  const head = ["", "found", "imported", "already present", "not imported"];
  const rows = notes
    .tallies()
    .map(({ kind, there, brought, known, left }) => [
      kind,
      ...[there, brought, known, left].map((count) =>
        count.toLocaleString("en-US"),
      ),
    ]);
  const remarks = notes.remarks();
  return [
    brought.dryRun
      ? "Dry run: nothing was written. This would be imported:"
      : "Imported from LiteLLM.",
    "",
    ...aligned([head, ...rows]),
    "",
    `Spend of ${brought.payers.toLocaleString("en-US")} payers; keys: $ ${brought.dollars.toFixed(2)}.`,
    ...listed("Not imported:", remarks, "left"),
    ...listed("Imported with differences:", remarks, "changed"),
    "",
    brought.dryRun
      ? "Run it without --dry-run to import."
      : "Existing keys now work at this gateway. Differences from LiteLLM: docs/litellm.md.",
  ].join("\n");
}

function listed(
  title: string,
  remarks: readonly Remark[],
  kind: Remark["kind"],
): readonly string[] {
  const own = remarks.filter((remark) => remark.kind === kind);
  if (own.length === 0) {
    return [];
  }
  return [
    "",
    title,
    ...own.map(({ text, count, examples }) => {
      const more = count > examples.length ? ", …" : "";
      return `  ${count} × ${text} (${examples.join(", ")}${more})`;
    }),
  ];
}

/** The first column to the left, numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0
          ? cell.padEnd(widths[column] ?? 0)
          : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}
