import { isRecord } from "../../core/json.ts";
import { Refusal } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { documentPieces, documentValue } from "./assemble.ts";
import { liveRows } from "./current-rows.ts";
import { openPrecheck } from "./precheck.ts";
import { readFields, type Projection } from "./projection.ts";
import { bodyObject } from "./query.ts";
import type { StoreRequest } from "./protocol.ts";
import { collate, compileSelector, type Selector } from "./selector.ts";
import type { DocumentRow, Store } from "./store.ts";

const PAGE_ROWS = 100;
const LAST_ID = "\u{10ffff}";
const NO_INDEX =
  "No matching index found, create an index to optimize query time.";
const MANY_EXAMINED =
  "\nThe number of documents examined is high in proportion to the number of results returned. Consider adding a more specific index to improve this.";

const OPTIONS = new Set([
  "selector",
  "fields",
  "limit",
  "skip",
  "sort",
  "bookmark",
  "conflicts",
  "execution_stats",
  "r",
  "stable",
  "stale",
  "update",
  "use_index",
  "allow_fallback",
  "partition",
]);

interface Search {
  readonly selector: Selector;
  readonly precheck: ReturnType<typeof openPrecheck>;
  readonly conflicts: boolean;
  readonly onlyConflicted: boolean;
  /** All members when undefined. */
  readonly projection: Projection | undefined;
  readonly limit: number;
  readonly skip: number;
  /** The bookmark's id; undefined for the first page. */
  readonly after: string | undefined;
  readonly descending: boolean;
  readonly range: IdRange;
  readonly stats: boolean;
}

/** Bounds of the ids that a selector can match. */
interface IdRange {
  readonly low: string | undefined;
  readonly high: string | undefined;
}

interface Match {
  readonly pieces: readonly Piece[];
  readonly value: Record<string, unknown>;
}

/** Mango search: examines every live document by id; there are no indexes. */
export function find(store: Store, request: StoreRequest): Answer {
  const body = bodyObject(request.body);
  const search = readSearch(store, body);
  const { low, high } = search.range;
  // Mango first compares the bounds by collation: `h:` to `h;` is empty, since `;` sorts before `:`.
  if (low !== undefined && high !== undefined && collate(low, high) > 0) {
    return { status: 200, body: '{"docs":[\r\n]}\r\n\n' };
  }
  return { status: 200, pieces: searchRows(store, search) };
}

function* searchRows(store: Store, search: Search): Generator<Piece, void> {
  const started = performance.now();
  let examined = 0;
  let skipped = 0;
  let found = 0;
  let last: string | undefined;
  yield '{"docs":[\r\n';
  for (const row of search.limit > 0 ? searchedRows(store, search) : []) {
    examined += 1;
    const match = matchingDocument(store, search, row);
    if (match === undefined) {
      yield "";
      continue;
    }
    if (skipped < search.skip) {
      skipped += 1;
      yield "";
      continue;
    }
    if (found > 0) {
      yield ",\r\n";
    }
    if (search.projection === undefined) {
      yield* match.pieces;
    } else {
      yield JSON.stringify(search.projection(match.value));
    }
    found += 1;
    last = row.id;
    if (found === search.limit) {
      break;
    }
  }
  yield `\r\n],\r\n"bookmark": ${JSON.stringify(bookmarkOf(last))}`;
  if (search.stats) {
    const stats = {
      total_keys_examined: examined,
      total_docs_examined: examined,
      total_quorum_docs_examined: 0,
      results_returned: found,
      execution_time_ms:
        Math.round((performance.now() - started) * 1000) / 1000,
    };
    yield `,\r\n"execution_stats": ${JSON.stringify(stats)}`;
  }
  const warning =
    examined > Math.max(found, 1) * 10 ? NO_INDEX + MANY_EXAMINED : NO_INDEX;
  yield `,\r\n"warning": ${JSON.stringify(warning)}}\r\n\n`;
}

function matchingDocument(
  store: Store,
  { precheck, conflicts, selector }: Search,
  row: DocumentRow,
): Match | undefined {
  if (precheck(row, row.winner) === false) {
    return undefined;
  }
  const pieces = documentPieces(store, row, row.winner, { conflicts });
  if (pieces === undefined) {
    return undefined;
  }
  const value = documentValue(pieces);
  return selector.matches(value) ? { pieces, value } : undefined;
}

function* searchedRows(store: Store, search: Search): Generator<DocumentRow> {
  const [beyond, order] = search.descending ? ["<", "DESC"] : [">", "ASC"];
  const sql = `SELECT * FROM documents WHERE ${search.onlyConflicted ? "conflicts > 0 AND " : ""}deleted = 0 AND id ${beyond} ? AND id >= ? AND id <= ? ORDER BY id ${order} LIMIT ${PAGE_ROWS}`;
  const { low = "", high = LAST_ID } = search.range;
  let after = search.after ?? (search.descending ? LAST_ID : "");
  for (;;) {
    // Between two pages a write may have reopened the file, which ends statements prepared before.
    const page = store.read
      .other(sql)
      .all(after, low, high) as unknown as DocumentRow[];
    yield* liveRows(store, page);
    if (page.length < PAGE_ROWS) {
      return;
    }
    after = page.at(-1)!.id;
  }
}

function readSearch(store: Store, body: Record<string, unknown>): Search {
  for (const name of Object.keys(body)) {
    if (!OPTIONS.has(name)) {
      throw new Refusal("invalid_key", `Invalid key ${name} for this request.`);
    }
  }
  const { selector, conflicts, fields } = body;
  if (selector === undefined) {
    throw new Refusal("missing_required_key", "Missing required key: selector");
  }
  if (!isRecord(selector)) {
    throw new Refusal(
      "invalid_selector_json",
      `Selector must be a JSON object, not: ${JSON.stringify(selector)}`,
    );
  }
  const descending = isDescending(body.sort, selector);
  const compiled = compileSelector(selector);
  const wanted = (selector as { _conflicts?: { $exists?: unknown } })
    ._conflicts;
  return {
    selector: compiled,
    precheck: openPrecheck(store, compiled),
    conflicts: conflicts === true,
    onlyConflicted: conflicts === true && wanted?.$exists === true,
    projection: readFields(fields),
    limit: countOption(body, "limit", 25),
    skip: countOption(body, "skip", 0),
    after: readBookmark(body.bookmark),
    descending,
    range: idRange(selector),
    stats: body.execution_stats === true,
  };
}

/** Documents can be sorted by `_id` only and, as in CouchDB, only if the selector limits it: then their list serves as the index. */
function isDescending(
  sort: unknown,
  selector: Record<string, unknown>,
): boolean {
  if (!hasEntries(sort)) {
    return false;
  }
  const direction =
    Array.isArray(sort) && sort.length === 1
      ? directionOfIds(sort[0])
      : undefined;
  if (direction === undefined || !limitsId(selector._id)) {
    throw new Refusal(
      "no_usable_index",
      "No index exists for this sort, try indexing by the sort fields.",
    );
  }
  return direction === "desc";
}

function directionOfIds(field: unknown): "asc" | "desc" | undefined {
  if (field === "_id") {
    return "asc";
  }
  const named =
    isRecord(field) && Object.keys(field).length === 1 ? field._id : undefined;
  return named === "asc" || named === "desc" ? named : undefined;
}

function limitsId(wanted: unknown): boolean {
  return (
    typeof wanted === "string" ||
    (isRecord(wanted) &&
      ["$eq", "$gt", "$gte", "$lt", "$lte"].some((name) => name in wanted))
  );
}

function hasEntries(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && Object.keys(value).length > 0
  );
}

function countOption(
  body: Record<string, unknown>,
  name: string,
  otherwise: number,
): number {
  const value = body[name] ?? otherwise;
  if (!Number.isInteger(value) || (value as number) < 0) {
    throw new Refusal(
      "invalid_non_neg_integer",
      `${JSON.stringify(value)} is not an integer greater than or equal to zero`,
    );
  }
  return value as number;
}

function idRange(selector: Record<string, unknown>): IdRange {
  const wanted = selector._id;
  if (typeof wanted === "string") {
    return { low: wanted, high: wanted };
  }
  const range = (wanted ?? {}) as Record<string, unknown>;
  const text = (...names: string[]): string | undefined =>
    names
      .map((name) => range[name])
      .find((value): value is string => typeof value === "string");
  return { low: text("$eq", "$gt", "$gte"), high: text("$eq", "$lt", "$lte") };
}

function bookmarkOf(last: string | undefined): string {
  return last === undefined
    ? "nil"
    : `h1${Buffer.from(last).toString("base64url")}`;
}

function readBookmark(bookmark: unknown): string | undefined {
  if (bookmark === undefined || bookmark === "nil" || bookmark === null) {
    return undefined;
  }
  const match =
    typeof bookmark === "string" ? /^h1([\w-]+)$/.exec(bookmark) : null;
  if (match === null) {
    throw new Refusal(
      "invalid_bookmark",
      `Invalid bookmark value: ${JSON.stringify(bookmark)}`,
    );
  }
  return Buffer.from(match[1]!, "base64url").toString();
}
