import type { CallBody } from "../calls/body.ts";
import { isRecord } from "../../core/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { chatByResponses, goesByResponses } from "./chat-responses.ts";
import { chatByGenerate, goesByGenerate } from "./gemini-generate.ts";
import type { ProviderWire } from "./wire.ts";

/** The API of its provider by which a chat is sent, and the chat as that API takes it. `spoken`: the provider's wire. */
export function chatFor(
  spoken: ProviderWire,
  body: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): { readonly wire: ProviderWire; readonly body: CallBody } {
  if (goesByResponses(spoken, body, deployment)) {
    return { wire: chatByResponses(spoken, deployment), body };
  }
  const wire = goesByGenerate(body, deployment)
    ? chatByGenerate(stream)
    : spoken;
  return { wire, body: withEffortAlone(body) };
}

/** LiteLLM takes an effort with a summary, which only the Responses API has: `{"effort": "high", "summary": "auto"}`. */
function withEffortAlone(body: CallBody): CallBody {
  const { reasoning_effort: effort } = body;
  return isRecord(effort)
    ? { ...body, reasoning_effort: effort["effort"] ?? null }
    : body;
}
