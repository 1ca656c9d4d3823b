import { crc32 } from "node:zlib";
import type { DatabaseSync } from "node:sqlite";
import { Damage } from "../refusal.ts";

/** Tables with a body, whose checksum is in the column `sum`; null: written by a release without checksums. */
const TABLES = ["revisions", "history"] as const;

/** A body is not the one that was written: the disk returns other bytes. */
export class DamagedBody extends Damage {
  override readonly isOfDocument = true;
  constructor(id: string, rev: string) {
    super(
      `the stored content of ${JSON.stringify(id)} ${rev} is damaged: check the disk, then run \`hearth jobs run notes-drill\`, which replaces current content from the newest backup`,
    );
  }
}

/** Adds the columns to a database file. Only additions, so that an earlier release can still open the file. */
export function prepareChecksums(database: DatabaseSync): void {
  const missing = TABLES.filter((table) => !hasSum(database, table));
  if (missing.length > 0) {
    const columns = missing.map(
      (table) => `ALTER TABLE ${table} ADD COLUMN sum INTEGER;`,
    );
    database.exec(`BEGIN IMMEDIATE; ${columns.join(" ")} COMMIT;`);
  }
}

/** The checksum in a SELECT: a file that a full disk left without the column has none. */
export function sumColumn(database: DatabaseSync): "sum" | "NULL AS sum" {
  return TABLES.every((table) => hasSum(database, table))
    ? "sum"
    : "NULL AS sum";
}

function hasSum(database: DatabaseSync, table: string): boolean {
  const found = database
    .prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = 'sum'")
    .get(table);
  return found !== undefined;
}

export function sumOf(body: Uint8Array): number {
  return crc32(body);
}

/** A row with a body and its checksum. */
export interface SummedBody {
  readonly body: Uint8Array;
  readonly sum: number | null;
}

export function isDamaged({ body, sum }: SummedBody): boolean {
  return sum !== null && sum !== sumOf(body);
}

/** The body of a row. Throws a DamagedBody if it is not the one that was written. */
export function checkedBody(
  row: SummedBody,
  id: string,
  rev: string,
): Uint8Array {
  if (isDamaged(row)) {
    throw new DamagedBody(id, rev);
  }
  return row.body;
}
