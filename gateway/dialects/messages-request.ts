import type { CallBody } from "../calls/body.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import {
  isRecord,
  numberOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { ChatBody } from "./client-shape.ts";
import {
  dialectOf,
  effortFor,
  effortOfBudget,
  leastEffort,
} from "./dialect.ts";
import { leadingInstructions } from "./leading-instructions.ts";
import { chatMessages } from "./messages-content.ts";
import { chatToolsOf } from "./messages-tools.ts";
import { isStrictSchema } from "./strict-schema.ts";

/** OpenAI rejects longer ids of end users. */
const LONGEST_USER = 64;

/** What only Anthropic's servers do, and an answer without it would be another one. */
const ANTHROPICS_OWN = [
  "compaction",
  "container",
  "inference_geo",
  "mcp_servers",
];

/** A body of Anthropic's Messages API as one of OpenAI's chat. */
export function chatBodyOf(
  body: CallBody,
  deployment: PricedDeployment,
): ChatBody {
  const lacks: string[] = [];
  const lack = (path: string) => void lacks.push(path);
  const dialect = dialectOf(deployment);
  const turns = messagesIn(body);
  const tools = chatToolsOf(body, turns, lack);
  for (const name of ANTHROPICS_OWN) {
    const value = body[name];
    if (value != null && !(Array.isArray(value) && value.length === 0)) {
      lack(name);
    }
  }
  // Without it the operator pays, not the customer whom the call names.
  const { bill_to: payer } = recordOf(body["billing_policy"]);
  if (payer != null && payer !== "self") {
    lack("billing_policy");
  }
  if (body["top_k"] != null && !dialect.topK) {
    lack("top_k");
  }
  const messages = [
    ...systemMessages(body["system"]),
    ...chatMessages(turns, lack, dialect.files),
  ];
  const chat = present({
    model: body.model,
    messages: dialect.leadingInstructions
      ? leadingInstructions(messages)
      : messages,
    [dialect.maxTokens]: body["max_tokens"],
    temperature: body["temperature"],
    top_p: body["top_p"],
    top_k: dialect.topK ? body["top_k"] : null,
    stop: body["stop_sequences"],
    ...tools,
    response_format: formatOf(body),
    reasoning_effort: dialect.reasoning ? effortOf(body, deployment) : null,
    user: userOf(body),
    stream: body["stream"] === true ? true : null,
  });
  return { body: { ...chat, model: body.model }, lacks };
}

function messagesIn(body: CallBody): readonly JsonRecord[] {
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalidParam("messages", "must be a list of at least one message.");
  }
  messages.forEach((message: unknown, index) => {
    if (isRecord(message) && typeof message["role"] === "string") {
      return;
    }
    throw new CallError(
      "invalid_request",
      `\`messages[${index}]\` must be an object with a \`role\` and a \`content\`.`,
      { param: `messages[${index}]` },
    );
  });
  return messages as readonly JsonRecord[];
}

function systemMessages(system: unknown): readonly JsonRecord[] {
  const content =
    typeof system === "string"
      ? system
      : recordsOf(system)
          .map((block) => textOf(block["text"]))
          .join("\n");
  return content === "" ? [] : [{ role: "system", content }];
}

function formatOf(body: CallBody): unknown {
  const format = recordOf(
    recordOf(body["output_config"])["format"] ?? body["output_format"],
  );
  const { type, schema } = format;
  return type === "json_schema"
    ? {
        type,
        json_schema: present({
          name: "answer",
          schema,
          strict: isStrictSchema(schema) ? true : null,
        }),
      }
    : null;
}

function effortOf(body: CallBody, deployment: PricedDeployment): string | null {
  const thinking = recordOf(body["thinking"]);
  if (thinking["type"] === "disabled") {
    return leastEffort(deployment);
  }
  const effort = recordOf(body["output_config"])["effort"];
  if (typeof effort === "string") {
    return effortFor(deployment, effort);
  }
  if (thinking["type"] !== "enabled") {
    return null;
  }
  return effortOfBudget(numberOf(thinking["budget_tokens"]) ?? 0);
}

function userOf(body: CallBody): string | null {
  const userId = recordOf(body["metadata"])["user_id"];
  return typeof userId === "string" && userId.length <= LONGEST_USER
    ? userId
    : null;
}
