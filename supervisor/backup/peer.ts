import { operatorHeaders } from "../credentials.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure, codeOf, textOf } from "../../core/failure.ts";

/** The supervisor of the other host, and what lets us in. */
export interface Peer {
  /** Without a slash at its end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * HEARTH_PEER_URL. Both supervisors of a stack have the same operator password, and that is what they show each other; where
 * they differ, HEARTH_PEER_PASSWORD is the other one's.
 */
export function peerOf(
  env: Environment,
  operatorPassword: string,
): Peer | undefined {
  const url = readVariable("HEARTH_PEER_URL", env)?.replace(/\/+$/, "");
  if (url === undefined || !URL.canParse(url)) {
    return undefined;
  }
  const password =
    readVariable("HEARTH_PEER_PASSWORD", env) ?? operatorPassword;
  return { url, headers: operatorHeaders(password) };
}

/** Asks the other host's supervisor; throws a Failure with its own sentence when it refuses, or why it cannot be reached. */
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
      `the other host's supervisor at ${url} cannot be reached (${codeOf(cause) ?? textOf(cause ?? error)}): see whether it runs, and whether HEARTH_PEER_URL is its address.`,
    );
  }
  if (answer.ok) {
    return answer;
  }
  const text = await answer.text().catch(() => "");
  throw new Failure(
    answer.status === 401
      ? `the other host's supervisor at ${url} does not know our password: both need the same operator password, or HEARTH_PEER_PASSWORD.`
      : `the other host's supervisor at ${url} refused (${answer.status}): ${sentenceIn(text)}`,
  );
}

function sentenceIn(text: string): string {
  try {
    const body = JSON.parse(text) as { error?: { message?: unknown } };
    return String(body.error?.message ?? text);
  } catch {
    return text.slice(0, 200);
  }
}
