import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../access/callers.ts";
import type { GatewayConfig } from "../config/types.ts";
import { isUnlogged, type CallOptions } from "./options.ts";

/** What tells about the client and its request. None of these authenticates anybody. */
const SHOWN =
  /^(user-agent|content-type|content-length|accept|traceparent|tracestate|anthropic-(version|beta)|openai-(organization|project|beta)|x-request-id|http-referer|referer|x-title|x-app|x-stainless-.*|x-hearth-.*|x-litellm-.*|x-openwebui-.*)$/;
/** Headers in which callers may send keys for providers, or for this gateway. */
const HIDDEN = /key|token|secret|auth|cookie|password/;
const MAX_HEADERS = 40;
const MAX_CHARACTERS = 500;

/**
 * The headers that are stored with a call's prompt and answer; null: these are not stored. They are where
 * `store_prompts_in_spend_logs` or the key's `store_prompts` is on, and the caller does not exclude the call.
 */
export function storedHeadersOf(
  config: Pick<GatewayConfig, "general">,
  caller: Caller,
  options: CallOptions,
  headers: IncomingHttpHeaders,
): Readonly<Record<string, string>> | null {
  const isStored =
    config.general.storePrompts ||
    (caller.kind === "key" && caller.storePrompts);
  if (!isStored || isUnlogged(config, options)) {
    return null;
  }
  return Object.fromEntries(
    Object.entries(headers)
      .flatMap(([name, value]) =>
        typeof value === "string" && SHOWN.test(name) && !HIDDEN.test(name)
          ? [[name, value.slice(0, MAX_CHARACTERS)] as const]
          : [],
      )
      .slice(0, MAX_HEADERS),
  );
}
