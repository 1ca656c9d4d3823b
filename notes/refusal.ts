import { codeOf, isFullDisk } from "../core/failure.ts";

/** The `error` values of CouchDB's responses and their HTTP statuses; `damaged` and `newer_version` are only of this store. */
const statuses = {
  bad_content_type: 415,
  bad_request: 400,
  conflict: 409,
  damaged: 500,
  database_name_too_long: 400,
  doc_validation: 400,
  document_too_large: 413,
  error: 500,
  file_exists: 412,
  forbidden: 403,
  gone: 410,
  illegal_database_name: 400,
  illegal_docid: 400,
  insufficient_storage: 507,
  internal_error: 500,
  invalid_bookmark: 400,
  invalid_key: 400,
  invalid_non_neg_integer: 400,
  invalid_operator: 400,
  invalid_selector_json: 400,
  method_not_allowed: 405,
  missing_required_key: 400,
  missing_stub: 412,
  newer_version: 500,
  no_usable_index: 400,
  not_found: 404,
  not_implemented: 501,
  query_parse_error: 400,
  request_timeout: 408,
  service_unavailable: 503,
  too_large: 413,
  unauthorized: 401,
} as const;

export type RefusalCode = keyof typeof statuses;

/** An error response: thrown anywhere, sent in one place. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: RefusalCode,
    reason: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(reason);
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return statuses[this.code];
  }
}

/** The JSON text of a refusal, as CouchDB writes it. */
export function refusalBody(refusal: Refusal): string {
  return `${JSON.stringify({ error: refusal.code, reason: refusal.message })}\n`;
}

/** The response to any failure: a full disk is named; other unexpected failures are internal errors whose details are only logged. */
export function refusalOf(failure: unknown): Refusal {
  if (failure instanceof Refusal) {
    return failure;
  }
  if (isFullDisk(failure)) {
    return fullDisk();
  }
  if (isDamage(failure)) {
    return new Refusal(
      "damaged",
      "The stored content is damaged; see the notes store's log.",
    );
  }
  if (storageFailureOf(failure) !== undefined) {
    return new Refusal(
      "internal_error",
      "The file of this database cannot be opened, or its disk fails or is read-only; see the notes store's log.",
    );
  }
  return new Refusal(
    "internal_error",
    "The notes store failed on this request; see its log.",
  );
}

export const fullDisk = (): Refusal =>
  new Refusal(
    "insufficient_storage",
    "The disk that holds the notes is full. Free some space there, then sync again.",
  );

export const noAttachments = (): Refusal =>
  new Refusal(
    "not_implemented",
    "Attachments are not supported. Put the content into a member of the document.",
  );

const SQLITE_CORRUPT = 11;
/** With SQLITE_NOTADB. The codes are the lowest byte of an extended code (https://www.sqlite.org/rescode.html). */
const DAMAGE_CODES: readonly unknown[] = [SQLITE_CORRUPT, 26];
/** SQLITE_READONLY, SQLITE_IOERR and SQLITE_CANTOPEN. */
const DISK_FAILURE_CODES: readonly unknown[] = [8, 10, 14];

/** Content that was read is not what was written. */
export class Damage extends Error {
  readonly errcode = SQLITE_CORRUPT;
  /** The rest of the file may be undamaged. */
  readonly isOfDocument: boolean = false;
}

function isDamage(failure: unknown): boolean {
  return DAMAGE_CODES.includes(codeOfSqlite(failure));
}

/** Why a database could not be read or written; `disk`: it fails or is read-only, or the file cannot be opened. */
export type StorageFailure = "damaged_document" | "damaged_file" | "disk";

/** Undefined for other failures, such as a full disk. */
export function storageFailureOf(failure: unknown): StorageFailure | undefined {
  if (isDamage(failure)) {
    return failure instanceof Damage && failure.isOfDocument
      ? "damaged_document"
      : "damaged_file";
  }
  const isOfDisk =
    ["EROFS", "EIO"].includes(codeOf(failure) ?? "") ||
    (DISK_FAILURE_CODES.includes(codeOfSqlite(failure)) &&
      !isFullDisk(failure));
  return isOfDisk ? "disk" : undefined;
}

function codeOfSqlite(failure: unknown): number | undefined {
  const { errcode } = failure as { errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : undefined;
}
