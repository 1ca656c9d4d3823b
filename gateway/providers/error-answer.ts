import type { PricedDeployment } from "../routing/catalog.ts";
import type { AnsweredError } from "./answered-error.ts";
import { UpstreamFailure } from "./failure.ts";
import type { ProviderCall, ResponseHeaders } from "./provider-call.ts";

/** Bytes of an error's text that are read and passed on. */
export const MAX_ERROR_BYTES = 64 * 1024;

export function contentTypeOf(headers: ResponseHeaders): string {
  return String(headers["content-type"] ?? "application/json");
}

/** An answer with an error status. */
export function errorAnswer(
  call: ProviderCall,
  status: number,
  headers: ResponseHeaders,
  text: string,
): UpstreamFailure {
  return new UpstreamFailure(
    status,
    withoutSecret(call.error(status, text), call.deployment),
    retryAfterMs(headers["retry-after"]),
  );
}

/** An error in an answer whose status is a success. */
export function answeredError(
  call: ProviderCall,
  headers: ResponseHeaders,
  { status, text, usage }: AnsweredError,
): UpstreamFailure {
  const failure = errorAnswer(call, status, headers, text);
  failure.usage = usage;
  return failure;
}

/** Ended by a time limit of the gateway: the provider is not aware of it and may finish the call. */
export function isTimeout(
  failure: UpstreamFailure,
  signal: AbortSignal,
): boolean {
  return failure.status === 408 || signal.aborted;
}

/** A provider may repeat the key it was sent. */
function withoutSecret(text: string, deployment: PricedDeployment): string {
  const key = deployment.apiKey?.reveal();
  return key === undefined || key.length < 4
    ? text
    : text.replaceAll(key, "[secret]");
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  const seconds = Number(Array.isArray(header) ? header[0] : header);
  return Number.isFinite(seconds) && seconds >= 0 && header !== undefined
    ? seconds * 1_000
    : null;
}
