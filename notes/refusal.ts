/** What a request can be refused for: the `error` word of CouchDB's answers and the HTTP status it stands for. */
const statuses = {
  bad_content_type: 415,
  bad_request: 400,
  conflict: 409,
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

/** A request that is answered with an error: thrown anywhere, turned into an answer in one place. */
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

/** What an unexpected failure becomes: a full disk is named, everything else is an internal error whose details go to the log only. */
export function refusalOf(failure: unknown): Refusal {
  if (failure instanceof Refusal) {
    return failure;
  }
  if (isFullDisk(failure)) {
    return fullDisk();
  }
  return new Refusal(
    "internal_error",
    "The notes store failed on this request; its log says why.",
  );
}

export const fullDisk = (): Refusal =>
  new Refusal(
    "insufficient_storage",
    "The disk that holds the notes is full. Free some space there, then sync again.",
  );

/** SQLITE_FULL, and SQLITE_IOERR_SHMSIZE for the index of the write-ahead log (https://www.sqlite.org/rescode.html). */
const FULL_DISK_CODES: readonly unknown[] = [13, 4874];

export function isFullDisk(failure: unknown): boolean {
  // node:sqlite puts SQLite's number into errcode.
  const { code, errcode } = failure as { code?: unknown; errcode?: unknown };
  return (
    code === "ENOSPC" || code === "EDQUOT" || FULL_DISK_CODES.includes(errcode)
  );
}
