import { Agent } from "undici";

/** Load balancers forget idle connections after a minute at the earliest. */
const KEEP_ALIVE_MS = 55_000;

/**
 * HTTP to other services over kept-alive connections, one for each request at a time. Not HTTP/2: requests to a host would wait, one
 * after the other, until a connection has shown which version it speaks.
 */
export function outgoingAgent(options: Agent.Options): Agent {
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    connections: null,
    allowH2: false,
    ...options,
  });
}
