import { readVariable, type Environment } from "../environment.ts";

/** The supervisor of the other host, and what lets us in. */
export type Peer = {
  /** Without a slash at its end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * HEARTH_PEER_URL. Both supervisors of a stack have the same operator password, and that is what they show each other; where
 * they differ, HEARTH_PEER_PASSWORD is the other one's.
 */
export function peerOf(env: Environment): Peer | undefined {
  const url = readVariable("HEARTH_PEER_URL", env)?.replace(/\/+$/, "");
  if (url === undefined || !URL.canParse(url)) return undefined;
  const password =
    readVariable("HEARTH_PEER_PASSWORD", env) ??
    readVariable("HEARTH_OPERATOR_PASSWORD", env);
  return {
    url,
    headers:
      password === undefined
        ? {}
        : {
            authorization: `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`,
          },
  };
}
