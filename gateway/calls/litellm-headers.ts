import type { Deployment, GatewayConfig } from "../config/types.ts";
import type { Gateway } from "../gateway.ts";
import type { Call } from "./call.ts";
import { deploymentHeaders } from "./deployment-headers.ts";

/** LiteLLM's names of Hearth's headers. */
const LITELLM_NAMES = [
  ["call-id", "call-id"],
  ["model-id", "model-id"],
  ["model-group", "model-group"],
  ["response-cost", "cost"],
  ["cache-key", "cache-key"],
  ["attempted-retries", "attempted-retries"],
  ["attempted-fallbacks", "attempted-fallbacks"],
  ["response-duration-ms", "duration-ms"],
  ["overhead-duration-ms", "overhead-ms"],
  ["applied-guardrails", "applied-guardrails"],
] as const;

/** Adds LiteLLM's names of the headers that are set. */
export function addTwins(headers: Record<string, string>): void {
  for (const [theirs, ours] of LITELLM_NAMES) {
    const value = headers[`x-hearth-${ours}`];
    if (value !== undefined) {
      headers[`x-litellm-${theirs}`] = value;
    }
  }
}

/** How often and for how long a call may try, in seconds. */
export function addAllowances(
  headers: Record<string, string>,
  { router, timeouts }: GatewayConfig,
  { options }: Call,
  deployment: Deployment | undefined,
): void {
  headers["x-litellm-max-retries"] = String(
    options.numRetries ?? deployment?.maxRetries ?? router.numRetries,
  );
  const timeoutMs =
    options.timeoutMs ??
    router.timeoutMs ??
    deployment?.timeoutMs ??
    timeouts.requestMs ??
    timeouts.firstByteMs;
  headers["x-litellm-timeout"] = String(timeoutMs / 1_000);
}

/** The headers of a failure after a provider was tried: identity of the deployment, attempts and allowances. */
export function failureHeaders(
  { config }: Pick<Gateway, "config">,
  call: Call,
  deployment: Deployment,
  {
    retries,
    fallbacks,
  }: { readonly retries: number; readonly fallbacks: number },
): Record<string, string> {
  const headers: Record<string, string> = {
    ...deploymentHeaders(deployment),
    "x-hearth-attempted-retries": String(retries),
    "x-hearth-attempted-fallbacks": String(fallbacks),
  };
  if (config.general.litellmHeaders) {
    addAllowances(headers, config, call, deployment);
  }
  return headers;
}
