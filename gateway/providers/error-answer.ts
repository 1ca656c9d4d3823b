import type { PricedDeployment } from "../routing/catalog.ts";
import { MAX_COOLDOWN_MS } from "../routing/cooldowns.ts";
import type { AnsweredError } from "./answered-error.ts";
import { UpstreamFailure } from "./failure.ts";
import {
  urlOf,
  type ProviderCall,
  type ResponseHeaders,
} from "./provider-call.ts";

/** Bytes of an error's text that are read, and characters of its message that are passed on. */
export const MAX_ERROR_BYTES = 64 * 1024;

/** Some servers invent higher ones, which HTTP does not have. */
const MAX_STATUS = 599;

export function contentTypeOf(headers: ResponseHeaders): string {
  return String(headers["content-type"] ?? "application/json");
}

/** An answer with an error status, or a redirect, which is not followed. */
export function errorAnswer(
  call: ProviderCall,
  status: number,
  headers: ResponseHeaders,
  text: string,
): UpstreamFailure {
  if (status >= 300 && status < 400) {
    return redirected(call, status, headers);
  }
  return new UpstreamFailure(
    status > MAX_STATUS ? 502 : status,
    withoutSecret(call.error(status, text), call.deployment)
      .slice(0, MAX_ERROR_BYTES)
      .toWellFormed(),
    retryAfterMs(headers["retry-after"]),
  );
}

/** The client knows nothing of the provider's addresses: the operator has to. */
function redirected(
  call: ProviderCall,
  status: number,
  { location }: ResponseHeaders,
): UpstreamFailure {
  const { apiBase } = call.deployment;
  const target = URL.parse(String(location ?? ""), urlOf(call));
  // Without what may be a credential.
  const place = target === null ? "" : target.origin + target.pathname;
  const base = place.endsWith(call.path)
    ? place.slice(0, -call.path.length)
    : place;
  return new UpstreamFailure(
    502,
    `${apiBase} answered with a redirect (${status})${base === "" ? "" : ` to ${base}`}: set \`api_base\` to the address that answers`,
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

/** A shorter word of a header is no credential. */
const MIN_SECRET_CHARACTERS = 8;

/** A provider may repeat the key and the headers it was sent; of `Bearer KEY` only the second word. */
export function withoutSecret(
  text: string,
  { apiKey, headers }: Pick<PricedDeployment, "apiKey" | "headers">,
): string {
  const key = apiKey?.reveal() ?? "";
  const words = Object.values(headers).flatMap((value) =>
    value
      .reveal()
      .split(/\s+/)
      .filter((word) => word.length >= MIN_SECRET_CHARACTERS),
  );
  return [...(key.length < 4 ? [] : [key]), ...words].reduce(
    (rest, secret) =>
      withoutCutSecret(rest.replaceAll(secret, "[secret]"), secret),
    text,
  );
}

/** A text that was read up to a limit may end within a secret. */
function withoutCutSecret(text: string, secret: string): string {
  for (let length = secret.length - 1; length >= 4; length -= 1) {
    if (text.endsWith(secret.slice(0, length))) {
      return `${text.slice(0, -length)}[secret]`;
    }
  }
  return text;
}

/** In seconds, or until a date. One that is over, or 0, asks for no time: how long to wait is left to the caller. */
function retryAfterMs(header: string | string[] | undefined): number | null {
  const written = Array.isArray(header) ? header[0] : header;
  if (written === undefined) {
    return null;
  }
  const seconds = Number(written);
  const ms = Number.isFinite(seconds)
    ? seconds * 1_000
    : Date.parse(written) - Date.now();
  return ms > 0 ? Math.min(ms, MAX_COOLDOWN_MS) : null;
}
