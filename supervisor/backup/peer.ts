import { parseRecord, recordOf } from "../../core/json.ts";
import { operatorHeaders } from "../credentials.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure, codeOf, textOf } from "../../core/failure.ts";
import { serverAddress } from "../../core/server-address.ts";

/** The supervisor of the other host, with credentials. */
export interface Peer {
  /** As {@link serverAddress} gives it. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * HEARTH_PEER_URL. Supervisors of a stack authenticate with their common operator password; if the passwords differ,
 * HEARTH_PEER_PASSWORD is that of the other one.
 */
export function peerOf(
  env: Environment,
  operatorPassword: string,
): Peer | undefined {
  const url = readVariable("HEARTH_PEER_URL", env);
  if (url === undefined || !URL.canParse(url)) {
    return undefined;
  }
  const password =
    readVariable("HEARTH_PEER_PASSWORD", env) ?? operatorPassword;
  return {
    url: serverAddress(url),
    headers: operatorHeaders(password),
  };
}

/** Sends a request to the other host's supervisor; throws a Failure with its message, or why it cannot be reached. */
export async function askPeer(
  { url, headers }: Peer,
  path: string,
  ask: RequestInit & { readonly duplex?: "half" },
): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`${url}${path}`, {
      ...ask,
      headers: { ...headers, ...(ask.headers as Record<string, string>) },
    });
  } catch (error) {
    ask.signal?.throwIfAborted();
    const cause = error instanceof Error ? error.cause : undefined;
    throw new Failure(
      `the other host's supervisor at ${url} cannot be reached (${codeOf(cause) ?? textOf(cause ?? error)}): check that it is running and that HEARTH_PEER_URL is correct.`,
    );
  }
  if (answer.ok) {
    return answer;
  }
  const text = await answer.text().catch(() => "");
  throw new Failure(
    answer.status === 401
      ? `the other host's supervisor at ${url} denied access: set the same operator password on both hosts, or HEARTH_PEER_PASSWORD.`
      : `the other host's supervisor at ${url} rejected the request (${answer.status}): ${sentenceIn(text)}`,
  );
}

function sentenceIn(text: string): string {
  const { message } = recordOf(parseRecord(text)?.["error"]);
  return String(message ?? text.slice(0, 200));
}
