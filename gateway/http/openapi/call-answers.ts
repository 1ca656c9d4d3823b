import { z } from "zod";
import { described } from "./described.ts";
import { count } from "./rows.ts";

/** What providers answer is passed on: fields that are always there are named, any others may come too. */

const text = z.string();

const usage = z
  .looseObject({ prompt_tokens: count, total_tokens: count })
  .meta({ id: "Usage" });

const message = z
  .looseObject({ role: text, content: z.union([text, z.null()]).optional() })
  .meta({ id: "AssistantMessage" });

const chat = z
  .looseObject({
    id: text,
    object: text,
    created: count,
    model: text,
    choices: z.array(
      z.looseObject({ index: count, message, finish_reason: text.nullable() }),
    ),
    usage: usage.optional(),
  })
  .meta({ id: "ChatCompletion" });

const completion = z
  .looseObject({
    id: text,
    object: text,
    created: count,
    model: text,
    choices: z.array(
      z.looseObject({
        index: count,
        text,
        finish_reason: text.nullable(),
      }),
    ),
    usage: usage.optional(),
  })
  .meta({ id: "Completion" });

const embeddings = z
  .looseObject({
    object: text,
    model: text,
    data: z.array(
      z.looseObject({
        index: count,
        embedding: z.union([z.array(z.number()), text]),
      }),
    ),
    usage: usage.optional(),
  })
  .meta({ id: "Embeddings" });

const anthropicMessage = z
  .looseObject({
    id: text,
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: text,
    content: z.array(z.looseObject({ type: text })),
    stop_reason: text.nullable(),
    usage: z.looseObject({ input_tokens: count, output_tokens: count }),
  })
  .meta({ id: "AnthropicMessage" });

const response = z
  .looseObject({
    id: text,
    object: z.literal("response"),
    status: text,
    model: text,
    output: z.array(z.looseObject({ type: text })),
  })
  .meta({ id: "Response" });

const model = z
  .object({
    id: text,
    object: z.literal("model"),
    created: count,
    owned_by: text,
    status: z.enum(["ready", "pending"]),
  })
  .meta({ id: "Model" });

const endpoint = z
  .object({
    model_name: text,
    model: text,
    model_id: text,
    api_base: text,
    cooling_down_until: text.nullable(),
    recent_calls: count,
    recent_failures: count,
    recent_rejections: count,
    error: text.optional(),
    unpriced: z.literal(true).optional(),
    waits_for: text.optional(),
  })
  .meta({ id: "EndpointHealth" });

export const CALL_ANSWERS = {
  "POST /v1/chat/completions": described(
    "Chat with a model (OpenAI's API).",
    chat,
  ),
  "POST /v1/completions": described(
    "Complete a text (OpenAI's older API).",
    completion,
  ),
  "POST /v1/embeddings": described("Embed texts (OpenAI's API).", embeddings),
  "POST /v1/messages": described(
    "Chat with a model (Anthropic's API).",
    anthropicMessage,
  ),
  "POST /v1/messages/count_tokens": described(
    "Count the tokens of a prompt; no model is asked.",
    z.looseObject({ input_tokens: count }),
  ),
  "POST /v1/responses": described(
    "Chat with a model (OpenAI's Responses API).",
    response,
  ),
  "POST /v1/moderations": described(
    "Classify texts (OpenAI's API).",
    z.looseObject({ results: z.array(z.looseObject({})) }),
  ),
  "POST /v1/images/generations": described(
    "Make images (OpenAI's API).",
    z.looseObject({ data: z.array(z.looseObject({})) }),
  ),
  "GET /v1/models": described(
    "The aliases that the key may use; with `ready` only those that can answer.",
    z.object({ object: z.literal("list"), data: z.array(model) }),
  ),
  "GET /v1/models/*": described("One alias, if the key may use it.", model),
  "GET /health": described(
    "Ask every deployment whether it answers.",
    z.object({
      healthy_endpoints: z.array(endpoint),
      unhealthy_endpoints: z.array(endpoint),
      pending_endpoints: z.array(endpoint),
      healthy_count: count,
      unhealthy_count: count,
    }),
  ),
  "GET /metrics": described(
    "Everything that is counted and measured, for Prometheus.",
    text,
    "text/plain",
  ),
  "GET /cache/ping": described(
    "Write and read an entry of the response cache; its hit rate.",
    z.object({
      status: z.enum(["healthy", "unhealthy"]),
      cache_type: z.enum(["redis", "memory"]),
      ping_response: z.boolean(),
      set_cache_response: z.enum(["success", "failure"]),
      hits: count,
      misses: count,
      hit_rate: z.number(),
    }),
  ),
  "GET /cache/redis/info": described(
    "What the Redis server of the response cache tells of itself.",
    z.object({
      cache_type: z.literal("redis"),
      num_clients: count,
      info: z.record(z.string(), z.string()),
    }),
  ),
  "POST /cache/delete": described(
    "Delete entries of the response cache by their x-hearth-cache-key.",
    z.object({ deleted: count }),
  ),
  "POST /cache/flushall": described(
    "Empty the response cache, and nothing else.",
    z.object({ deleted: count }),
  ),
  "POST /config/check": described(
    "Check the configuration as the next start would read it; nothing is changed.",
    z.object({ mistakes: z.array(text) }),
  ),
  "POST /config/reload": described(
    "Read the configuration again; with a mistake in it the old one stays.",
    z.object({
      added: z.array(text),
      removed: z.array(text),
      changed: z.array(text),
      settings: z.array(text),
      need_restart: z.array(text),
    }),
  ),
} as const;

/** Routes that need no key. */
export const OPEN_ANSWERS = {
  "GET /health/liveliness": described(
    "Whether the process lives.",
    z.literal("I'm alive!"),
  ),
  "GET /health/liveness": described(
    "Whether the process lives.",
    z.literal("I'm alive!"),
  ),
  "GET /health/readiness": described(
    "Whether calls can be served; 503 when not.",
    z.object({
      status: z.enum(["connected", "stopping", "starting"]),
      db: z.enum(["connected", "Not connected"]),
      cache: z.enum(["redis", "memory"]).nullable(),
      limits: z.enum(["redis", "memory", "redis_away"]),
      version: text,
      journal: z.object({ pending: count }),
    }),
  ),
} as const;
