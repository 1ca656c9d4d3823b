import { createServer } from "node:http";
import { text as readText } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";

const ID = "1234567890123456789";
const ROUNDED = String(Number(ID));
const ARGUMENTS = `{"id":${ID}}`;
const AS_TEXT = JSON.stringify(ARGUMENTS);

const USAGE =
  '"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1}';
const ANSWERS: Readonly<Record<string, string>> = {
  "/v1/messages": `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"f","input":${ARGUMENTS}}],"stop_reason":"tool_use",${USAGE}}`,
  "/v1/chat/completions": `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":${AS_TEXT}}}]},"finish_reason":"tool_calls"}],${USAGE}}`,
};

let received = "";
let gateway: TestGateway;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  const provider = createServer((request, response) => {
    void readText(request).then((body) => {
      received = body;
      response.setHeader("content-type", "application/json");
      response.end(ANSWERS[request.url ?? ""]);
    });
  });
  const url = `http://127.0.0.1:${await listen(provider)}`;
  const database = await throwAwayDatabase();
  const alias = (name: string, model: string, base: string) => `
  - model_name: ${name}
    provider_params: { model: ${model}, api_base: "${base}", api_key: k }`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:${alias("claude", "anthropic/claude-sonnet-4-5", url)}${alias("gpt", "openai/gpt-4.1-mini", `${url}/v1`)}`,
  });
  closing.push(gateway.stop, () => provider.close(), database.drop);
});
afterAll(async () => {
  for (const close of closing) {
    await close();
  }
});
beforeEach(() => {
  received = "";
});

const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","enum":[${ID}]}}}`;
const TOOL = `{"name":"f","parameters":${SCHEMA}}`;
const CLIENTS = {
  chat: (model: string) => [
    "/v1/chat/completions",
    `{"model":"${model}","tools":[{"type":"function","function":${TOOL}}],"messages":[{"role":"user","content":"?"},{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":${AS_TEXT}}}]},{"role":"tool","tool_call_id":"t","content":"x"}]}`,
  ],
  messages: (model: string) => [
    "/v1/messages",
    `{"model":"${model}","max_tokens":9,"tools":[{"name":"f","input_schema":${SCHEMA}}],"messages":[{"role":"user","content":"?"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${ARGUMENTS}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`,
  ],
  gemini: (model: string) => [
    `/v1beta/models/${model}:generateContent`,
    `{"tools":[{"functionDeclarations":[${TOOL}]}],"contents":[{"role":"user","parts":[{"text":"?"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":${ARGUMENTS}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":${ARGUMENTS}}}]}]}`,
  ],
} as const;

test.each(
  (["chat", "messages", "gemini"] as const).flatMap((client) =>
    (["claude", "gpt"] as const).map((model) => ({ client, model })),
  ),
)(
  "an integer of 64 bits in a tool call of a client of $client and $model has the same digits both ways",
  async ({ client, model }) => {
    const [path = "", body] = CLIENTS[client](model);
    const { status, text } = await gateway.request("POST", path, body);
    expect({ status, text }).toMatchObject({ status: 200 });
    expect(received + text).not.toContain(ROUNDED);
    expect(received).toContain(model === "gpt" ? AS_TEXT : ARGUMENTS);
    expect(text).toContain(client === "chat" ? AS_TEXT : ARGUMENTS);
  },
);
