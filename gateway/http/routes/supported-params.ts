import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import { out } from "../../admin/kinds/out.ts";
import { validateBody } from "../../calls/validate.ts";
import { chatFor } from "../../providers/chat-wire.ts";
import { wireOf } from "../../providers/families.ts";
import type { PricedDeployment } from "../../routing/catalog.ts";
import { route } from "../route.ts";

/** OpenAI's parameters of a chat, each with a value that has an effect. */
const PARAMS: Readonly<Record<string, unknown>> = {
  audio: { voice: "alloy", format: "wav" },
  frequency_penalty: 0.5,
  function_call: "auto",
  functions: [{ name: "f", parameters: { type: "object" } }],
  logit_bias: { "1": 1 },
  logprobs: true,
  max_completion_tokens: 16,
  max_tokens: 16,
  metadata: { topic: "test" },
  modalities: ["text", "audio"],
  n: 2,
  parallel_tool_calls: false,
  prediction: { type: "content", content: "text" },
  presence_penalty: 0.5,
  prompt_cache_key: "key",
  reasoning_effort: "low",
  response_format: { type: "json_object" },
  safety_identifier: "person",
  seed: 1,
  service_tier: "flex",
  stop: ["."],
  store: true,
  stream: true,
  stream_options: { include_usage: true },
  temperature: 0.5,
  tool_choice: "auto",
  tools: ["f", "g"].map((name) => ({
    type: "function",
    function: { name, parameters: { type: "object", properties: {} } },
  })),
  top_logprobs: 2,
  top_p: 0.5,
  user: "person",
  verbosity: "low",
  web_search_options: { search_context_size: "low" },
};

const MESSAGES = [{ role: "user", content: "hello" }];
/** Without tools there is nothing to choose. */
const TOGETHER = ["tool_choice", "parallel_tool_calls"];

const paramsQuery = z.object({
  model: z.string("is required: an alias of `/v1/models`").min(1),
});

/** GET /utils/supported_openai_params */
export const supportedParams = route(
  "GET /utils/supported_openai_params",
  {
    summary:
      "List OpenAI's parameters of a chat that a model supports, on at least one of its deployments.",
    input: paramsQuery,
    answer: z.object({ supported_openai_params: out.texts }),
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    authorizeRoute(caller, "GET /utils/supported_openai_params");
    const { model } = validateBody(paramsQuery, request.query);
    const { deployments } = authorizeModel(gateway, caller, model);
    return {
      supported_openai_params: Object.keys(PARAMS).filter((name) =>
        deployments.some((deployment) => supports(deployment, name)),
      ),
    };
  },
);

/** Decided by what the translation of a call would reject. */
function supports(deployment: PricedDeployment, name: string): boolean {
  const tools = TOGETHER.includes(name) ? { tools: PARAMS["tools"] } : {};
  const asked = {
    model: deployment.alias,
    messages: MESSAGES,
    ...tools,
    [name]: PARAMS[name],
  };
  const spoken = wireOf(deployment.provider);
  const { wire, body } = chatFor(spoken, asked, deployment, false);
  return wire
    .unsupported("chat", body, deployment)
    .every(
      (path) =>
        path !== name &&
        !path.startsWith(`${name}.`) &&
        !path.startsWith(`${name}[`),
    );
}
