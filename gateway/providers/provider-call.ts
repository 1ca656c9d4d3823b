import type { FormData } from "undici";
import type { TimeoutConfig } from "../config/types.ts";
import { reasons } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/** By lower-case names. */
export type ResponseHeaders = Readonly<
  Record<string, string | string[] | undefined>
>;

/** One request to a provider. */
export interface ProviderCall {
  readonly deployment: PricedDeployment;
  /** Appended to the deployment's `apiBase`, unless it is a whole address. */
  readonly path: string;
  readonly callId: string;
  /** Of the provider's format; the deployment's own override them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | FormData;
  /** The message of an error answer, as one sentence. */
  error(status: number, text: string): string;
  /** A whole answer need not be JSON: subtitles, or the audio of a health check. */
  readonly anyType?: true;
  /** Receives the headers of a successful answer. */
  readonly onHeaders?: (headers: ResponseHeaders) => void;
  /** Counts a part of a long whole answer; throws where this gateway has no memory for it. */
  readonly reserve?: (part: Buffer) => void;
  /** Ends the call early. */
  readonly signal: AbortSignal;
  /** Until the first byte of the answer, instead of the configured time; null: as configured. */
  readonly firstByteMs: number | null;
}

/** The headers to send, credentials included. */
export function headersFor(
  { deployment, callId, headers, body }: ProviderCall,
  accept: string,
): Record<string, string> {
  return withOwnHeaders(deployment, {
    // A form's is set with its boundary.
    ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
    accept,
    "x-request-id": callId,
    ...headers,
  });
}

/** Headers of the provider's format with those of the deployment, which override them. */
export function withOwnHeaders(
  { headers: own }: PricedDeployment,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const sent = { ...headers };
  for (const [name, value] of Object.entries(own)) {
    sent[name] = value.reveal();
  }
  return sent;
}

/**
 * 0: no limit. Reasoning models may send nothing for long, except Anthropic's, which send pings; a lost connection is
 * noticed by TCP keep-alive, which undici enables.
 */
export function idleMsOf(
  { deployment, firstByteMs }: ProviderCall,
  { idleMs: configuredMs }: TimeoutConfig,
): number {
  // A runner that loads its model may have sent the headers of its answer before.
  const idleMs = Math.max(configuredMs, firstByteMs ?? 0);
  const silent = deployment.provider !== "anthropic" && reasons(deployment);
  return deployment.idleTimeoutMs ?? (silent ? 0 : idleMs);
}

/** Where a call is sent. */
export function urlOf({ deployment, path }: ProviderCall): string {
  return isWhole(path) ? path : deployment.apiBase + path;
}

/** The same in parts, parsed once for each deployment. */
export function placeOf({ deployment, path }: ProviderCall): {
  readonly origin: string;
  readonly path: string;
} {
  if (isWhole(path)) {
    const { origin, pathname, search } = new URL(path);
    return { origin, path: pathname + search };
  }
  const { origin, base } = addressOf(deployment);
  return { origin, path: base + path };
}

function isWhole(path: string): boolean {
  return !path.startsWith("/");
}

interface Address {
  readonly origin: string;
  /** The path of `apiBase` without its last slash. */
  readonly base: string;
}

const addresses = new WeakMap<PricedDeployment, Address>();

function addressOf(deployment: PricedDeployment): Address {
  const known = addresses.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const { origin, pathname } = new URL(deployment.apiBase);
  const address = { origin, base: pathname.replace(/\/$/, "") };
  addresses.set(deployment, address);
  return address;
}
