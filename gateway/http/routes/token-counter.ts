import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import {
  authorizeModel,
  findModel,
  resolveAlias,
} from "../../access/models.ts";
import type { Caller } from "../../access/callers.ts";
import { out } from "../../admin/kinds/out.ts";
import { tokenizedModel } from "../../calls/call.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import { listOf, recordOf, textOf } from "../../../core/json.ts";
import { invalidParam } from "../errors.ts";
import { route } from "../route.ts";

const item = z.looseObject({});

const counterBody = z.looseObject({
  model: z.string(),
  prompt: z.string().nullish(),
  messages: z.array(item).nullish(),
  /** In Google's shape: `{role, parts: [{text}]}`. */
  contents: z.array(item).nullish(),
  tools: z.array(item).nullish(),
  system: z.unknown().optional(),
});

/** POST /utils/token_counter */
export const tokenCounter = route(
  "POST /utils/token_counter",
  {
    summary:
      "Count the tokens of a prompt, messages or Google's contents for a model, without calling a provider. A model that is not configured is counted by its name.",
    input: counterBody,
    answer: z.object({
      total_tokens: out.count,
      request_model: out.text,
      model_used: out.text,
      tokenizer_type: out.text,
      count_source: z.literal("local_estimate"),
      original_response: z.null(),
      error: z.literal(false),
      error_message: z.null(),
      status_code: z.null(),
    }),
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    authorizeRoute(caller, "POST /utils/token_counter");
    const named = modelOf(request);
    const body = validateBody(counterBody, request.body);
    const { model, margin } = tokenizerOf(gateway, caller, named);
    // Before its vocabulary is loaded, a model's tokens are only bounded.
    await gateway.tokens.warm([model]);
    return {
      total_tokens: Math.ceil(countOf(gateway, body, model) * margin),
      request_model: named,
      model_used: model,
      tokenizer_type: "openai_tokenizer",
      count_source: "local_estimate",
      original_response: null,
      error: false,
      error_message: null,
      status_code: null,
    };
  },
);

/** The model by which tokens are counted, and the margin learnt from the usage that its provider reports. */
function tokenizerOf(
  gateway: Gateway,
  caller: Caller,
  named: string,
): { readonly model: string; readonly margin: number } {
  const alias = resolveAlias(caller, named);
  if (findModel(gateway.catalog, caller, alias) === null) {
    return { model: named, margin: 1 };
  }
  const group = authorizeModel(gateway, caller, named);
  const [deployment] = group.deployments;
  return {
    model: tokenizedModel(group),
    margin: deployment === undefined ? 1 : gateway.tokens.margin(deployment),
  };
}

function countOf(
  { tokens }: Pick<Gateway, "tokens">,
  { prompt, messages, contents, tools, system }: z.output<typeof counterBody>,
  model: string,
): number {
  if (messages != null || contents != null) {
    const chat = messages ?? (contents ?? []).map(messageOf);
    return tokens.countChat({ messages: chat, tools, system }, model);
  }
  if (prompt != null) {
    return tokens.estimateText(prompt, model);
  }
  throw invalidParam(
    "messages",
    "is required: or send a `prompt`, or `contents` in Google's shape.",
  );
}

function messageOf({ role, parts }: z.output<typeof item>) {
  const text = listOf(parts).map((part) => textOf(recordOf(part)["text"]));
  return {
    role: role === "model" ? "assistant" : "user",
    content: text.join(""),
  };
}
