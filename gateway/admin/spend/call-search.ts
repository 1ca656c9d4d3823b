import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { conditions, type Conditions } from "../paging.ts";

/**
 * A search reads the ledger by an index and stops: a rare combination of filters must not read ten million rows for one
 * page. What it has not read yet is the start of the next page.
 */

/** Adds conditions on `spend_log l` to a statement. */
export type Restrict = (to: Conditions) => void;

export type FitsError = (message: string) => boolean;

/** Rows that an index finds in the order of their time: the union of `branches`. */
export interface Driver {
  readonly branches: readonly Restrict[];
  /** The same at once, for a search that another driver leads; null: `filters` have it. */
  readonly condition: Restrict | null;
}

interface CallSearch {
  /** What an index can find; the most selective one leads. */
  readonly drivers: readonly Driver[];
  /** What no index finds. */
  readonly filters: readonly Restrict[];
  /** Bounds of `l.started_at`. */
  readonly range: Restrict;
  /** Of the rows that fit otherwise, what the text of the error must be; null: anything. */
  readonly fitsError?: FitsError | null;
  /** Towards older calls, or newer ones. */
  readonly order: "asc" | "desc";
  /** Exclusive; null: from the end. */
  readonly from: Position | null;
  readonly size: number;
}

/** A place between two rows of the ledger. */
export interface Position {
  /** In UTC with microseconds. */
  readonly at: string;
  readonly requestId: string;
}

export interface Found {
  /** In the order of the search, at most `size`. */
  readonly calls: readonly Position[];
  /** Where the next page continues; null: there is nothing more. */
  readonly next: Position | null;
}

/** Rows read at once, before the time is checked: 5 to 10 ms where each is on another page of the table. */
const CHUNK = 2_000;
/** A page is answered after this time, with what was found. */
const SEARCH_MS = 30;
const MAX_BRANCHES = 12;

/** `searchMs` and `chunk` bound what is read. */
export async function searchCalls(
  admin: Pick<Admin, "pool">,
  search: CallSearch,
  { searchMs = SEARCH_MS, chunk = CHUNK } = {},
): Promise<Found> {
  const plan = await planOf(admin, search, chunk);
  const startedAt = performance.now();
  const calls: Position[] = [];
  let from = search.from;
  for (;;) {
    const rows = await readChunk(admin, search, plan, from, {
      chunk,
      wanted: search.size - calls.length,
    });
    calls.push(...rows.filter(fitting(search)).map(positionOf));
    if (calls.length > search.size) {
      const page = calls.slice(0, search.size);
      return { calls: page, next: page.at(-1) ?? null };
    }
    const end = rows.find(({ is_last: isLast }) => isLast);
    if (end === undefined) {
      return { calls, next: null };
    }
    from = positionOf(end);
    if (performance.now() - startedAt > searchMs) {
      return { calls, next: from };
    }
  }
}

function fitting({ fitsError }: CallSearch): (row: ChunkRow) => boolean {
  return ({ fits, error }) =>
    fits === true && (fitsError == null || fitsError(error ?? ""));
}

interface Plan {
  readonly branches: readonly Restrict[];
  /** What the rows of the branches are checked for. */
  readonly filters: readonly Restrict[];
}

const everyRow: Restrict = () => undefined;

/** The driver that leads, and all other conditions. */
async function planOf(
  admin: Pick<Admin, "pool">,
  search: CallSearch,
  chunk: number,
): Promise<Plan> {
  const usable = search.drivers.filter(
    ({ branches }) => branches.length <= MAX_BRANCHES,
  );
  const lead = await mostSelective(admin, search, usable, chunk);
  const others = search.drivers.flatMap((driver) =>
    driver.condition === null || driver === lead ? [] : [driver.condition],
  );
  return {
    branches: lead?.branches ?? [everyRow],
    filters: [...search.filters, ...others],
  };
}

/** The driver whose rows reach furthest in the direction of the search; asked of the indexes alone. */
async function mostSelective(
  admin: Pick<Admin, "pool">,
  search: CallSearch,
  drivers: readonly Driver[],
  chunk: number,
): Promise<Driver | undefined> {
  if (drivers.length <= 1) {
    return drivers[0];
  }
  const reached = await Promise.all(
    drivers.map(({ branches }) => reachOf(admin, search, branches, chunk)),
  );
  const [best] = drivers
    .map((driver, at) => ({ driver, reach: reached[at] ?? Infinity }))
    .toSorted((one, other) =>
      // Equal infinities have no difference.
      one.reach === other.reach ? 0 : other.reach - one.reach,
    );
  return best?.driver;
}

/** Over which time a chunk of rows extends, in ms; null: there are fewer. */
async function reachOf(
  { pool }: Pick<Admin, "pool">,
  search: CallSearch,
  branches: readonly Restrict[],
  chunk: number,
): Promise<number | null> {
  const reaches = await Promise.all(
    branches.map(async (branch) => {
      const values: unknown[] = [];
      const where = whereOf(search, branch, search.from, values);
      const [row] = await query<{ ms: number }>(
        pool,
        `SELECT abs(extract(epoch FROM started_at - ${startOf(search, values)}) * 1000)::float8 AS ms FROM spend_log l
           ${where} ORDER BY started_at ${search.order} OFFSET ${chunk - 1} LIMIT 1`,
        values,
      );
      return row?.ms ?? Infinity;
    }),
  );
  const least = Math.min(...reaches);
  return Number.isFinite(least) ? least : null;
}

/** The moment at which a search starts. */
function startOf({ from }: CallSearch, values: unknown[]): string {
  return from === null ? "now()" : `$${values.push(from.at)}::timestamptz`;
}

interface ChunkRow extends Row {
  readonly at: string;
  readonly request_id: string;
  /** null where a condition compares with a missing value. */
  readonly fits: boolean | null;
  /** Only for `fitsError`. */
  readonly error: string | null;
  readonly is_last: boolean;
}

/** Of the next rows those that fit, one more than wanted or for `fitsError` all, and the last one if the chunk is full. */
function readChunk(
  { pool }: Pick<Admin, "pool">,
  search: CallSearch,
  { branches, filters }: Plan,
  from: Position | null,
  { chunk, wanted }: { readonly chunk: number; readonly wanted: number },
): Promise<readonly ChunkRow[]> {
  const values: unknown[] = [];
  const checked = conditions(values);
  for (const restrict of filters) {
    restrict(checked);
  }
  const [error, limit] =
    search.fitsError == null
      ? ["NULL", wanted + 2]
      : ["l.metadata #>> '{error_information,error_message}'", chunk];
  const order = `ORDER BY l.started_at ${search.order}, l.request_id ${search.order}`;
  const ofBranch = (branch: Restrict) =>
    `SELECT * FROM spend_log l ${whereOf(search, branch, from, values)} ${order} LIMIT ${chunk}`;
  const [only = everyRow] = branches;
  // A row may be of several branches.
  const rows =
    branches.length === 1
      ? ofBranch(only)
      : `SELECT DISTINCT ON (l.started_at, l.request_id) * FROM (${branches.map((branch) => `(${ofBranch(branch)})`).join(" UNION ALL ")}) l ${order} LIMIT ${chunk}`;
  return query<ChunkRow>(
    pool,
    `SELECT to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, request_id, fits, error, place = ${chunk} AS is_last
       FROM (SELECT l.started_at, l.request_id, ${error} AS error, ${checked.all()} AS fits, row_number() OVER (${order}) AS place FROM (${rows}) l) l
       WHERE fits OR place = ${chunk} ${order} LIMIT ${limit}`,
    values,
  );
}

/** The conditions on the rows of a branch; values that they need are added. */
function whereOf(
  { range, order }: CallSearch,
  branch: Restrict,
  from: Position | null,
  values: unknown[],
): string {
  const where = conditions(values);
  branch(where);
  range(where);
  if (from !== null) {
    where.and(
      `(l.started_at, l.request_id) ${order === "desc" ? "<" : ">"} (${where.bind(from.at)}::timestamptz, ?)`,
      from.requestId,
    );
  }
  return where.where();
}

function positionOf({ at, request_id: requestId }: ChunkRow): Position {
  return { at, requestId };
}
