import OpenAI, { APIError } from "openai";
import { expect, vi } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  OUTPUT_PRICE,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { TestRedis } from "../../test/servers/redis.ts";
import { query, type Pool } from "../database/pool.ts";
import {
  startTalkingProvider,
  USAGE,
  type TalkingProvider,
} from "./provider-fixture.ts";

/** The price of each answer of the provider, in dollars. */
export const PRICE = USAGE.input * INPUT_PRICE + USAGE.output * OUTPUT_PRICE;

/** A row of the ledger. */
interface SpendRow {
  readonly spend: number;
  readonly status: string;
  readonly completion_tokens: number;
}

/** A gateway with its provider: aliases `chat`, without the Responses API, and `native`, `native-too` and `pair`, with it. */
export interface ResponsesTestbed {
  readonly gateway: TestGateway;
  readonly provider: TalkingProvider;
  readonly pool: Pool;
  readonly databaseUrl: string;
  readonly yaml: string;
  /** OpenAI's client with a new key. */
  clientOf(fields: Readonly<Record<string, unknown>>): Promise<OpenAI>;
  /** Rows of the ledger of a user, once it has as many. */
  rowsOf(user: string, count: number): Promise<readonly SpendRow[]>;
  stop(): Promise<void>;
}

export async function startResponsesTestbed(
  redis: TestRedis | null = null,
  more = "",
): Promise<ResponsesTestbed> {
  const database = await throwAwayDatabase();
  const provider = await startTalkingProvider();
  const yaml = yamlFor(provider.url, redis !== null) + more;
  const gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml,
    env:
      redis === null
        ? {}
        : { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
  });
  const { ledger, pool } = gateway.running.gateway;
  return {
    gateway,
    provider,
    pool,
    databaseUrl: database.url,
    yaml,
    async clientOf(fields) {
      return new OpenAI({
        apiKey: await gateway.createKey(fields),
        baseURL: `${gateway.url}/v1`,
        maxRetries: 0,
      });
    },
    async rowsOf(user, count) {
      return vi.waitUntil(
        async () => {
          await ledger.flush();
          const rows = await query<SpendRow>(
            pool,
            "SELECT spend::float8 AS spend, status, completion_tokens FROM spend_log WHERE user_id = $1",
            [user],
          );
          return rows.length >= count ? rows : null;
        },
        { timeout: 60_000, interval: 50 },
      );
    },
    async stop() {
      await gateway.stop();
      await provider.stop();
      await database.drop();
    },
  };
}

function yamlFor(url: string, withRedis: boolean): string {
  const deployment = (alias: string, more: string, model = alias) =>
    `  - model_name: ${alias}
    provider_params: { model: openai/m-${model}, api_base: "${url}", api_key: x, input_cost_per_token: ${INPUT_PRICE}, output_cost_per_token: ${OUTPUT_PRICE} }
    model_info: { ${more} }\n`;
  const native = "supports_responses: true";
  return `model_list:
${deployment("chat", "supports_responses: false")}${deployment("native", native)}${deployment("native-too", native)}${["a", "b"].map((name) => deployment("pair", native, name)).join("")}guardrails:
  - guardrail_name: secrets
    litellm_params: { guardrail: hide-secrets, mode: pre_call }
proxy_settings: { cache: true, cache_params: { type: ${withRedis ? "redis" : "memory"} } }
`;
}

/** A message as chat has it. */
export const text = (role: string, words: string) => ({ role, content: words });

/** The error that a call ends with. */
export async function errorOf(call: Promise<unknown>): Promise<APIError> {
  const error: unknown = await call.then(
    () => new Error("it was answered"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

/** Polls until a response in background has ended. */
export async function ended(client: OpenAI, id: string) {
  return vi.waitUntil(
    async () => {
      const response = await client.responses.retrieve(id);
      return ["queued", "in_progress"].includes(response.status ?? "")
        ? null
        : response;
    },
    { timeout: 60_000, interval: 50 },
  );
}

export type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;

export function numbersOf(events: readonly ResponseEvent[]): readonly number[] {
  return events.map(({ sequence_number }) => sequence_number);
}

export async function allOf(
  stream: AsyncIterable<ResponseEvent>,
): Promise<readonly ResponseEvent[]> {
  const events: ResponseEvent[] = [];
  for await (const event of stream) {
    events.push(event);
  }
  return events;
}

/** The events until the first text, with which the client leaves. */
export async function eventsUntilText(
  stream: AsyncIterable<ResponseEvent>,
): Promise<readonly ResponseEvent[]> {
  const events: ResponseEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (event.type === "response.output_text.delta") {
      break;
    }
  }
  return events;
}

/** A response without what OpenAI's client adds to it. */
export async function polled(client: OpenAI, id: string): Promise<object> {
  const { output_text: _added, ...response } =
    await client.responses.retrieve(id);
  return response;
}
