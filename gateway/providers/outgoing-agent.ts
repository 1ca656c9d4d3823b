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

/**
 * The answer to a request with this signal; when it aborts first, throws what `reason` gives, if not null. undici itself notices only once
 * the request has a connection.
 */
export async function unlessAborted<T>(
  answer: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown,
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => {
    const cause = reason();
    if (cause !== null) {
      aborted.reject(cause);
    }
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) {
    onAbort();
  }
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
