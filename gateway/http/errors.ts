/** All errors of the API by name; their status and type are decided here only. */
const KINDS = {
  no_key: { status: 401, type: "auth_error" },
  malformed_key: { status: 401, type: "auth_error" },
  unknown_key: { status: 401, type: "token_not_found_in_db" },
  invalid_token: { status: 401, type: "auth_error" },
  issuer_unavailable: { status: 503, type: "issuer_unavailable" },
  expired_key: { status: 401, type: "expired_key" },
  blocked: { status: 401, type: "auth_error" },
  key_model_access_denied: { status: 403, type: "key_model_access_denied" },
  team_model_access_denied: { status: 403, type: "team_model_access_denied" },
  user_model_access_denied: { status: 403, type: "user_model_access_denied" },
  org_model_access_denied: { status: 403, type: "org_model_access_denied" },
  permission_denied: { status: 403, type: "permission_denied" },
  budget_exceeded: { status: 400, type: "budget_exceeded" },
  budget_held: { status: 429, type: "budget_held" },
  rate_limit_exceeded: { status: 429, type: "rate_limit_exceeded" },
  model_blocked: { status: 403, type: "model_blocked" },
  model_pending: { status: 503, type: "model_pending" },
  journal_full: { status: 503, type: "journal_full" },
  limits_unavailable: { status: 503, type: "limits_unavailable" },
  cache_unavailable: { status: 503, type: "cache_unavailable" },
  unknown_model: { status: 400, type: "invalid_request_error" },
  no_deployments_available: { status: 429, type: "no_deployments_available" },
  queue_full: { status: 429, type: "queue_full" },
  queue_timeout: { status: 503, type: "queue_timeout" },
  guardrail_blocked: { status: 400, type: "guardrail_blocked" },
  guardrail_unavailable: { status: 503, type: "guardrail_unavailable" },
  upstream_error: { status: 502, type: "upstream_error" },
  invalid_request: { status: 400, type: "invalid_request_error" },
  overloaded: { status: 503, type: "overloaded" },
  upgrade_required: { status: 426, type: "invalid_request_error" },
  body_too_large: { status: 413, type: "invalid_request_error" },
  already_exists: { status: 409, type: "invalid_request_error" },
  already_member: { status: 400, type: "team_member_already_in_team" },
  unknown_object: { status: 404, type: "not_found" },
  database_unavailable: { status: 503, type: "database_unavailable" },
  not_found: { status: 404, type: "not_found" },
  internal: { status: 500, type: "internal_error" },
} as const satisfies Record<string, { status: number; type: string }>;

export type ErrorKind = keyof typeof KINDS;

interface ErrorDetails {
  /** The field or parameter that is wrong. */
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Overrides the status of the kind: an upstream's status. */
  readonly status?: number;
  /** Instead of the status: the code of OpenAI or Anthropic where clients act on it. */
  readonly code?: string;
  /** For logs and the ledger instead of the message, which may repeat what a caller sent. */
  readonly logged?: string;
}

/** An error with a message for the caller; thrown anywhere, answered in one place. */
export class CallError extends Error {
  readonly kind: ErrorKind;
  readonly details: ErrorDetails;
  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message);
    this.kind = kind;
    this.details = details;
  }
}

export function statusOf(error: CallError): number {
  return error.details.status ?? KINDS[error.kind].status;
}

/** The message as logs and the ledger show it. */
export function loggedMessage({ message, details }: CallError): string {
  return details.logged ?? message;
}

/** `{"error":{message,type,param,code}}`, the shape of OpenAI's API. */
export function errorBody(error: CallError): { readonly error: ErrorObject } {
  return {
    error: {
      message: error.message,
      type: KINDS[error.kind].type,
      param: error.details.param ?? null,
      code: error.details.code ?? String(statusOf(error)),
    },
  };
}

interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

/** A field or parameter that cannot be accepted; `reason` continues its name: "must be a number." */
export function invalidParam(param: string, reason: string): CallError {
  return new CallError("invalid_request", `\`${param}\` ${reason}`, { param });
}

export function databaseUnavailable(): CallError {
  return new CallError(
    "database_unavailable",
    "The database is unavailable. Try again in a moment.",
    { headers: { "retry-after": "2" } },
  );
}
