import type { Logger } from "pino";
import type { Recorded } from "../database/ledger.ts";
import { isContentRejected, isValueRejected } from "../database/pool.ts";
import { storableName } from "./names.ts";
import { MAX_TOKENS } from "../tokens/reported-usage.ts";
import type { SpendRow } from "./rows.ts";

/** `ends`: the rows complete their batch, and the journal's mark moves with them. */
type RecordRows = (
  rows: readonly SpendRow[],
  ends: boolean,
) => Promise<Recorded>;

/** A row that is rejected even as {@link plainRow}, with the error. */
interface LeftOut {
  readonly row: SpendRow;
  readonly error: unknown;
}

/**
 * Records rows with any content. A batch that Postgres rejects for its content is halved until the row is found that
 * causes it: that row is recorded as {@link plainRow}, and all others as they are. A database that is away, a
 * fault of the tables and every other error is thrown unchanged.
 */
export async function recordAll(
  rows: readonly SpendRow[],
  record: RecordRows,
  log: Logger,
): Promise<Recorded> {
  try {
    return await record(rows, true);
  } catch (error) {
    requireContentRejected(error);
    const leftOut: LeftOut[] = [];
    const recorded = await recordParts(rows, error, record, log, leftOut);
    // If some of several rows could be recorded, the fault is not in the tables.
    if (rows.length > 1 && leftOut.length === rows.length) {
      throw leftOut[0]?.error;
    }
    for (const { row, error } of leftOut) {
      log.error(
        { error, row },
        "the database rejected a call's row even in its simplified form: it is missing from the ledger and logged here in full",
      );
    }
    return joined(recorded, await record([], true));
  }
}

async function recordSome(
  rows: readonly SpendRow[],
  record: RecordRows,
  log: Logger,
  leftOut: LeftOut[],
): Promise<Recorded> {
  try {
    return await record(rows, false);
  } catch (error) {
    requireContentRejected(error);
    return recordParts(rows, error, record, log, leftOut);
  }
}

/** Records rows that were rejected together. */
async function recordParts(
  rows: readonly SpendRow[],
  refusal: unknown,
  record: RecordRows,
  log: Logger,
  leftOut: LeftOut[],
): Promise<Recorded> {
  const [row] = rows;
  if (row !== undefined && rows.length === 1) {
    return recordPlain(row, refusal, record, log, leftOut);
  }
  const middle = rows.length >> 1;
  return joined(
    await recordSome(rows.slice(0, middle), record, log, leftOut),
    await recordSome(rows.slice(middle), record, log, leftOut),
  );
}

function requireContentRejected(error: unknown): void {
  if (!isContentRejected(error)) {
    throw error;
  }
}

async function recordPlain(
  row: SpendRow,
  refusal: unknown,
  record: RecordRows,
  log: Logger,
  leftOut: LeftOut[],
): Promise<Recorded> {
  const plain = plainRow(row);
  try {
    const recorded = await record([plain], false);
    log.error(
      { error: refusal, call: row.request_id },
      "the database rejected a call's row; recorded with shortened names and without free text",
    );
    return recorded;
  } catch (error) {
    // A plain row is complete.
    if (!isValueRejected(error)) {
      throw error;
    }
    leftOut.push({ row: plain, error });
    return NOTHING;
  }
}

const NOTHING: Recorded = { inserted: new Set(), totals: [], softBudgets: [] };

/** Totals of the later one count. */
function joined(one: Recorded, other: Recorded): Recorded {
  const totals = new Map(
    [...one.totals, ...other.totals].map((total) => [
      `${total.entity}|${total.window}`,
      total,
    ]),
  );
  return {
    inserted: new Set([...one.inserted, ...other.inserted]),
    totals: [...totals.values()],
    softBudgets: [...one.softBudgets, ...other.softBudgets],
  };
}

const NAMES = [
  "request_id",
  "call_type",
  "payer",
  "api_key",
  "user_id",
  "team_id",
  "organization_id",
  "end_user",
  "model_group",
  "model_id",
  "model",
  "provider",
  "cache_key",
  "response_id",
  "requester_ip",
] as const satisfies readonly (keyof SpendRow)[];
const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "cache_write_tokens",
] as const satisfies readonly (keyof SpendRow)[];
const MAX_TAGS = 100;

/**
 * The row without anything that Postgres could reject: amounts, times and storable names unchanged, other names shortened
 * so that they stay distinct, and no free text.
 */
function plainRow(row: SpendRow): SpendRow {
  const names = NAMES.map((column) => {
    const name = row[column];
    return [column, typeof name === "string" ? storableName(name) : null];
  });
  return {
    ...row,
    ...(Object.fromEntries(names) as Pick<SpendRow, (typeof NAMES)[number]>),
    ...(Object.fromEntries(
      COUNTS.map((column) => [column, storableCount(row[column])]),
    ) as Pick<SpendRow, (typeof COUNTS)[number]>),
    tags:
      row.tags === null
        ? null
        : [...new Set(row.tags.slice(0, MAX_TAGS).map(storableName))],
    spend: Number.isFinite(Number(row.spend)) ? row.spend : 0,
    saved: Number.isFinite(row.saved) ? row.saved : 0,
    session_id: null,
    metadata: {
      note: "the database rejected the original row: long names are shortened, free text is removed",
    },
  };
}

function storableCount(count: number): number {
  return Number.isFinite(count)
    ? Math.min(Math.max(Math.round(count), 0), MAX_TOKENS)
    : 0;
}
