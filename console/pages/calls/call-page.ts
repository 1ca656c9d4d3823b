import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { callInFull, storedPrompt } from "../../../supervisor/gateway/calls.ts";
import { showPage } from "../../http/show-page.ts";
import { textIn } from "../nouns/noun-address.ts";
import { gatewayHandlers, type NounContext } from "../nouns/noun-context.ts";
import { callHref, CALLS_AWAY, CALLS_PATH } from "./call-choice.ts";
import { viewCall } from "./call-view.ts";
import { viewPrompt } from "./prompt-view.ts";

/** GET /spend/calls/ID: one call; GET /spend/calls/ID/prompt: its stored prompt and answer, each view of which is audited. */
export function registerCallPage(
  server: FastifyInstance,
  context: NounContext,
): void {
  const handle = gatewayHandlers(context, CALLS_AWAY);
  server.get(`${CALLS_PATH}/:id`, handle(CALLS_PATH, showCall));
  server.get(`${CALLS_PATH}/:id/prompt`, handle(hrefIn, showPrompt));
}

/** The path of a call, here and at the gateway. */
function hrefIn({ params }: FastifyRequest): string {
  return callHref(textIn(params, "id"));
}

async function showCall(
  request: FastifyRequest,
  reply: FastifyReply,
  { api, timeZone }: NounContext,
): Promise<FastifyReply> {
  const answer = await api.ask("GET", hrefIn(request));
  const view = viewCall(callInFull.parse(answer), timeZone, Date.now());
  const { title, look } = view;
  return showPage(
    request,
    reply,
    { title, look, current: "/spend" },
    "call",
    view,
  );
}

async function showPrompt(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: NounContext,
): Promise<FastifyReply> {
  const back = hrefIn(request);
  const answer = await api.ask("GET", `${back}/prompt`);
  return showPage(
    request,
    reply,
    { title: "Prompt and answer", look: "none", current: "/spend" },
    "call-prompt",
    { ...viewPrompt(storedPrompt.parse(answer)), back },
  );
}
