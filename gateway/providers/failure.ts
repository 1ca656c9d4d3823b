import { shortened } from "../../core/words.ts";
import type { Usage } from "../tokens/reported-usage.ts";

/** Characters of a message that are kept: some providers repeat the whole call. */
const MAX_KEPT_CHARACTERS = 2_000;

/** A provider rejected a call, failed or was not reached. The message contains no secrets. */
export class UpstreamFailure extends Error {
  /** The upstream's status; 408 for a timeout, 502 for an address that cannot be reached. */
  readonly status: number;
  readonly retryAfterMs: number | null;
  /** The provider received the whole call and may charge for it although no answer arrived. */
  mayBeCharged = false;
  /** The usage that the provider reports despite the failure. */
  usage: Usage | null = null;
  /** Caused by the call's own time limit or a test hook, not by the deployment. */
  byRequest = false;
  /** Nor is the call sent again: the next answer may be charged, too, and would have no more room. */
  isLast = false;
  constructor(
    status: number,
    message: string,
    retryAfterMs: number | null = null,
  ) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Its message in the ledger and in traces; the client gets the whole one. */
  get keptMessage(): string {
    return shortened(this.message, MAX_KEPT_CHARACTERS).toWellFormed();
  }
}

/** What is known of a failure from its report alone. */
type Reported = Pick<UpstreamFailure, "status" | "message">;

const TIMEOUTS = new Set([
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** A connection error as a failure that names the address. */
export function unreachable(error: unknown, address: string): UpstreamFailure {
  return (
    unsendable(error, address) ??
    lateAnswer(error, address) ??
    new UpstreamFailure(
      502,
      `${address} cannot be reached (${causeOf(error)}): check that it is running and that its address is correct`,
    )
  );
}

/** null: the call could be written. */
function unsendable(error: unknown, address: string): UpstreamFailure | null {
  return (error as { code?: string }).code === "UND_ERR_INVALID_ARG"
    ? new UpstreamFailure(
        502,
        `the call to ${address} cannot be sent: its API key or one of its extra_headers has a character that HTTP does not allow, such as "…"; set it again`,
      )
    : null;
}

const TOO_LONG = "UND_ERR_RES_EXCEEDED_MAX_SIZE";

/** The same after the start of its answer. */
export function brokenOff(error: unknown, address: string): UpstreamFailure {
  if ((error as { code?: string }).code === TOO_LONG) {
    return new UpstreamFailure(
      502,
      `${address} sent an answer that is too long: check that this is the address of its API`,
    );
  }
  return (
    lateAnswer(error, address) ??
    new UpstreamFailure(
      502,
      `${address} broke off its answer (${causeOf(error)}): try again, and if that repeats, see its log or that of a proxy before it`,
    )
  );
}

/** null: the error is not that of a time limit. */
function lateAnswer(error: unknown, address: string): UpstreamFailure | null {
  const { code } = error as { code?: string };
  return code !== undefined && TIMEOUTS.has(code)
    ? new UpstreamFailure(
        408,
        `${address} did not answer in time: try again, or set a longer timeout`,
      )
    : null;
}

function causeOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? "connection failed";
}

/** 409 is a lock that was not free in time; Groq's 498 a tier without capacity: https://console.groq.com/docs/errors */
const RETRYABLE = [401, 403, 404, 408, 409, 429, 498];

/** Whether another attempt may help: timeouts, connection errors, rate limits, server errors, an account without credit. */
export function isRetryable(failure: UpstreamFailure): boolean {
  const { status } = failure;
  if (isContentFilter(failure)) {
    return false;
  }
  return RETRYABLE.includes(status) || status >= 500 || isOutOfCredit(failure);
}

/** Whether the operator's account at the provider has no credit left; Anthropic says so with 400. */
function isOutOfCredit({ status, message }: Reported): boolean {
  return (
    status === 402 ||
    (status === 400 && /credit balance is too low/i.test(message))
  );
}

/**
 * Whether a failure counts against its deployment. Failures caused by the request do not: other statuses, an unknown model,
 * a content filter, a prompt that is too long, whatever status the provider uses for them.
 */
export function countsAgainstDeployment(failure: UpstreamFailure): boolean {
  const { status, message, byRequest } = failure;
  if (byRequest || isContentFilter(failure) || isContextWindow(failure)) {
    return false;
  }
  // OpenAI's answer to a single request above the limit of a whole minute.
  if (status === 429) {
    return !/request too large/i.test(message);
  }
  return (
    [401, 403, 408].includes(status) || status >= 500 || isOutOfCredit(failure)
  );
}

const CONTENT_FILTER =
  /content[ _-]?(filter|management|policy)|flagged|moderation|safety system/i;

/** Whether the content was rejected: another deployment would do the same. */
export function isContentFilter({ status, message }: Reported): boolean {
  return (
    ![401, 408, 429].includes(status) &&
    status >= 400 &&
    CONTENT_FILTER.test(message)
  );
}

/** As OpenAI and most others say it, then Anthropic, Bedrock, Gemini, xAI, Groq (twice), vLLM, Moonshot and Alibaba. */
const CONTEXT_WINDOW = new RegExp(
  [
    "context[ _](length|window|size|limit)",
    "maximum context",
    "too many (input )?tokens",
    "(prompt|input) is too long",
    // A provider may repeat a caller's text: with any number of characters, one of 64 kB would take seconds.
    "input token count .{0,64}exceeds the maximum",
    "maximum prompt length",
    "reduce the length of the (messages|prompt)",
    "request too large",
    "longer than the maximum model length",
    "exceeded model token limit",
    "range of input length",
  ].join("|"),
  "i",
);

/** OpenAI's code for a prompt that is too long: agents act on it, and shorten the conversation. */
export const CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded";

/** Whether the prompt was too long for the model: another model may take it. */
export function isContextWindow(failure: Reported): boolean {
  const { status, message } = failure;
  return (
    ([400, 413, 422].includes(status) || status >= 500) &&
    CONTEXT_WINDOW.test(message)
  );
}

/** Why a request ends when its call does. */
export function callEnded(): Error {
  return new Error("the call was ended");
}
