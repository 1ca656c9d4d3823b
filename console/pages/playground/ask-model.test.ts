import { expect, test } from "vitest";
import {
  Refusal,
  type AdminApi,
} from "../../../supervisor/gateway/admin-api.ts";
import {
  askModel,
  MAX_ANSWER_CHARACTERS,
  wholeAnswer,
  type Piece,
} from "./ask-model.ts";

const body = { model: "mock", messages: [] };
const stays = new AbortController().signal;

/** A gateway that answers with these chunks of a stream; `then` decides how it goes on. */
function gatewayWith(
  chunks: readonly object[],
  then: (signal: AbortSignal) => Promise<void> = async () => {},
): AdminApi {
  const api: AdminApi = {
    address: "http://gateway",
    as: () => api,
    actingFor: () => api,
    ask: () => Promise.reject(new Error("not used")),
    stream: async (_path, _body, signal) => ({
      callId: "call-1",
      body: (async function* () {
        for (const chunk of chunks) {
          yield Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
        }
        await then(signal);
        yield Buffer.from("data: [DONE]\n\n");
      })(),
    }),
  };
  return api;
}

const delta = (fields: object, more: object = {}) => ({
  choices: [{ index: 0, delta: fields, ...more }],
});

async function rejectedBy(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }
  throw signal.reason;
}

test("pieces arrive in order, and the parts of tool calls are joined", async () => {
  const pieces = askModel(
    gatewayWith([
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "hm" }),
      delta({ content: "It is " }),
      delta({ content: "noon" }),
      delta({ tool_calls: [{ index: 0, function: { name: "clock" } }] }),
      delta({ tool_calls: [{ index: 1, function: { name: "sun" } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
      delta({}, { finish_reason: "tool_calls" }),
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 5 } },
    ]),
    body,
    stays,
  );
  const seen: Piece[] = [];
  let next = await pieces.next();
  while (next.done !== true) {
    seen.push(next.value);
    next = await pieces.next();
  }
  expect(seen).toEqual([
    { kind: "started", callId: "call-1" },
    { kind: "reasoning", text: "hm" },
    { kind: "text", text: "It is " },
    { kind: "text", text: "noon" },
  ]);
  expect(next.value).toEqual({
    model: "mock",
    callId: "call-1",
    text: "It is noon",
    reasoning: "hm",
    tools: [
      { name: "clock", arguments: '{"at":1}' },
      { name: "sun", arguments: "" },
    ],
    finish: "tool_calls",
    usage: { input: 7, output: 5 },
    firstTokenMs: expect.any(Number),
    totalMs: expect.any(Number),
    error: null,
  });
});

test("a rejected call has the gateway's sentence and no call", async () => {
  const api: AdminApi = {
    ...gatewayWith([]),
    stream: () =>
      Promise.reject(new Refusal("model x does not exist.", 404, "model")),
  };
  expect(await wholeAnswer(askModel(api, body, stays))).toMatchObject({
    callId: null,
    error: "Model x does not exist.",
    firstTokenMs: null,
  });
});

test("an answer that fails midway keeps its text", async () => {
  const api = gatewayWith([
    delta({ content: "half" }),
    { error: { message: "The provider failed." } },
  ]);
  expect(await wholeAnswer(askModel(api, body, stays))).toMatchObject({
    text: "half",
    error: "The provider failed.",
    finish: null,
  });
});

test("a cut connection is named", async () => {
  const api = gatewayWith([delta({ content: "half" })], async () => {
    throw new TypeError("terminated");
  });
  expect(await wholeAnswer(askModel(api, body, stays))).toMatchObject({
    text: "half",
    error: expect.stringContaining("the connection ended before the answer"),
  });
});

test("an answer is stopped at its maximum of characters, and at its maximum of time", async () => {
  const long = "x".repeat(MAX_ANSWER_CHARACTERS + 1);
  const endless = gatewayWith([delta({ content: long })], rejectedBy);
  expect((await wholeAnswer(askModel(endless, body, stays))).error).toBe(
    "Stopped after 1,000,000 characters, the maximum of the playground.",
  );
  const slow = gatewayWith([delta({ content: "well" })], rejectedBy);
  expect(await wholeAnswer(askModel(slow, body, stays, 100))).toMatchObject({
    text: "well",
    error: "Stopped after 0.1 s, the maximum of the playground.",
  });
});

test("once the browser has left, the call ends without an answer", async () => {
  const left = new AbortController();
  const slow = gatewayWith([delta({ content: "well" })], rejectedBy);
  const answer = wholeAnswer(askModel(slow, body, left.signal));
  left.abort();
  await expect(answer).rejects.toBe(left.signal.reason);
});
