import { PROVIDERS } from "../config/providers.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { translationFor, type Translation } from "./translation.ts";

/** A not-found error about something that the call names, from a server that knows the route. */
const NAMES_A_THING = /\bmodel\b|\bwith id\b|\bprevious_response/i;
/** LM Studio's answer to an unknown route, which has status 200. */
const UNEXPECTED_ENDPOINT = /^unexpected endpoint or method/i;

/** Whether a Responses call goes to a deployment as chat because its server was found to have no `/responses`. */
export function goesAsChat(
  { router }: Pick<Gateway, "router">,
  { kind, ownAccess }: Pick<Call, "kind" | "ownAccess">,
  { id }: PricedDeployment,
): boolean {
  return (
    kind.endpoint === "responses" &&
    !ownAccess &&
    router.observations.lacksResponses(id)
  );
}

/**
 * Sends a call; if it was a Responses call and the server at the deployment's own `api_base` has no `/responses`, sends it
 * again as chat, and remembers that once chat has answered.
 */
export async function withChatInstead<Answer>(
  gateway: Pick<Gateway, "config" | "router">,
  call: Call,
  deployment: PricedDeployment,
  translation: Translation,
  send: (translation: Translation) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await send(translation);
  } catch (error) {
    if (!isWithoutResponses(call, deployment, translation, error)) {
      throw error;
    }
    const answer = await send(asChat(gateway, call, deployment, error));
    if (!call.ownAccess) {
      gateway.router.observations.missedResponses(deployment.id);
    }
    return answer;
  }
}

/** A deployment that declares that it has the endpoint is believed. */
function isWithoutResponses(
  { kind }: Call,
  { providerName, apiBase, mode, info }: PricedDeployment,
  { endpoint }: Translation,
  error: unknown,
): error is UpstreamFailure {
  if (
    kind.endpoint !== "responses" ||
    endpoint !== "responses" ||
    !(error instanceof UpstreamFailure)
  ) {
    return false;
  }
  const isDeclared =
    info["supports_responses"] === true || mode === "responses";
  return (
    !isDeclared &&
    PROVIDERS[providerName]?.apiBase !== apiBase &&
    saysUnknownRoute(error)
  );
}

function saysUnknownRoute({ status, message }: UpstreamFailure): boolean {
  if (UNEXPECTED_ENDPOINT.test(message)) {
    return true;
  }
  return (
    [405, 501].includes(status) ||
    (status === 404 && !NAMES_A_THING.test(message))
  );
}

/** Throws the failure, with the reason, if chat cannot express the call. */
function asChat(
  { config }: Pick<Gateway, "config">,
  call: Call,
  deployment: PricedDeployment,
  { status }: UpstreamFailure,
): Translation {
  try {
    return translationFor(config, call, deployment, { asChat: true });
  } catch (error) {
    if (!(error instanceof CallError)) {
      throw error;
    }
    throw new UpstreamFailure(
      status,
      `${deployment.apiBase} has no /responses, and the call cannot be sent as chat: ${error.message}`,
    );
  }
}
