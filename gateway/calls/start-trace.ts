import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../access/callers.ts";
import type { Gateway } from "../gateway.ts";
import type { CallTrace, TracedCall } from "../tracing/traces.ts";

/** What of a call its span shows. */
interface StartedCall extends Omit<
  TracedCall,
  "alias" | "callType" | "keyAlias"
> {
  readonly kind: { readonly callType: string };
  readonly group: { readonly alias: string };
  readonly caller: Caller;
}

/** Starts the trace of a call; null: it is not traced. */
export function startTrace(
  { traces }: Pick<Gateway, "traces">,
  call: StartedCall,
  headers: IncomingHttpHeaders,
): CallTrace | null {
  if (traces === null) {
    return null;
  }
  const { id, stream, sessionId, payers, body, caller } = call;
  return traces.start(
    {
      id,
      stream,
      sessionId,
      payers,
      body,
      callType: call.kind.callType,
      alias: call.group.alias,
      keyAlias: caller.kind === "key" ? caller.alias : null,
    },
    headers,
  );
}
