import type { Caller } from "../access/callers.ts";
import type { Gateway } from "../gateway.ts";
import { guardsOf } from "../guardrails/select.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import { wireOf } from "../providers/families.ts";
import { numberOf, parseRecord, type JsonRecord } from "../../core/json.ts";
import type { ForwardedHeaders } from "../providers/wire.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import type { CallBody } from "./body.ts";
import { tokenizedModel } from "./call.ts";
import { providerBody } from "./gateway-fields.ts";
import { failedCallError } from "./failed-call.ts";

/** A count is wanted at once, or an estimate instead. */
const TIMEOUT_MS = 5_000;

/** One request to count the tokens of a body of the Messages API. */
interface Counted {
  /** Sent to the provider as `x-request-id`. */
  readonly id: string;
  readonly caller: Caller;
  readonly group: ModelGroup;
  readonly body: CallBody;
  readonly forwarded: ForwardedHeaders;
}

/**
 * The answer of the provider, where it counts tokens itself (Anthropic does, at no cost), else an estimate that says so. Prompts
 * that guardrails check are estimated: they would have to be checked first. Throws the provider's rejection of the request.
 */
export async function countTokensOf(
  gateway: Pick<
    Gateway,
    "catalog" | "config" | "log" | "metrics" | "providers" | "router" | "tokens"
  >,
  counted: Counted,
): Promise<JsonRecord> {
  const { caller, group, body } = counted;
  const deployment = group.deployments.find((one) =>
    counts(gateway, group, one),
  );
  if (
    deployment !== undefined &&
    guardsOf(gateway, caller, group, body) === null
  ) {
    const answer = await askProvider(gateway, counted, deployment);
    if (answer !== null) {
      return answer;
    }
  }
  return estimatedTokens(gateway, group, body);
}

function counts(
  { router }: Pick<Gateway, "router">,
  group: ModelGroup,
  deployment: PricedDeployment,
): boolean {
  return (
    wireOf(deployment.provider).speaks("count_tokens", deployment) &&
    router.cooldowns.cooling(cooldownId(group, deployment)) === null
  );
}

/** null: the provider cannot count now. */
async function askProvider(
  gateway: Pick<Gateway, "catalog" | "config" | "providers">,
  { id, caller, group, body, forwarded }: Counted,
  deployment: PricedDeployment,
): Promise<JsonRecord | null> {
  const wire = wireOf(deployment.provider);
  const sent = wire.request(
    "count_tokens",
    providerBody(body),
    deployment,
    false,
  );
  try {
    const answer = await gateway.providers.ask({
      deployment,
      path: wire.path("count_tokens", deployment),
      callId: id,
      headers: wire.headers(deployment, forwarded),
      body: JSON.stringify(sent),
      error: (status, text) => wire.error(status, text),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      firstByteMs: null,
    });
    const read = parseRecord(answer.body.toString("utf8"));
    return numberOf(read?.["input_tokens"]) === null ? null : read;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) {
      throw error;
    }
    if (error.status !== 400 && error.status !== 413) {
      return null;
    }
    throw failedCallError(gateway, { caller, group }, error);
  }
}

/** A count that says that it is an estimate. */
export function estimatedTokens(
  { tokens }: Pick<Gateway, "tokens">,
  group: ModelGroup,
  body: CallBody,
): JsonRecord {
  const [deployment] = group.deployments;
  const counted = tokens.countChat(body, tokenizedModel(group));
  const margin = deployment === undefined ? 1 : tokens.margin(deployment);
  return { input_tokens: Math.ceil(counted * margin), estimated: true };
}
