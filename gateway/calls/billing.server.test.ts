import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  startTestGateway,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { MockProvider } from "../../test/servers/provider.ts";
import { query } from "../database/pool.ts";
import { JournalFull } from "../journal/journal-writer.ts";

let testbed: Testbed;
let gateway: TestGateway;
let provider: MockProvider;

const own = (input: number, output: number) =>
  `input_cost_per_token: ${input}, output_cost_per_token: ${output}`;

/** 10 tokens in and 5,000 out cost $0.05007. */
const DEAR = { input: 0.000007, output: 0.00001 };

const models = (url: string) => `
  - model_name: dear
    provider_params: { model: openai/dear, api_base: "${url}", api_key: x, ${own(DEAR.input, DEAR.output)} }
  - model_name: impatient
    provider_params: { model: openai/slow, api_base: "${url}", api_key: x, timeout: 0.2, max_retries: 0, ${own(0.001, 0)} }
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0, ${own(0.001, 0)} }
  - model_name: sonnet
    provider_params: { model: anthropic/claude-sonnet-4-5, api_base: "${url}", api_key: x, ${own(0, OUTPUT_PRICE)} }
  - model_name: whisper
    provider_params: { model: openai/whisper-1, api_key: x }
`;

beforeAll(async () => {
  testbed = await startTestbed((url) => modelYaml(url, models(url)));
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

interface Row {
  readonly status: string;
  readonly spend: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly unpriced: boolean;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

async function rowOf(callId: string | null): Promise<Row> {
  const { ledger, pool } = gateway.running.gateway;
  let row: Row | undefined;
  await expect
    .poll(
      async () => {
        await ledger.flush();
        [row] = await query<Row>(
          pool,
          "SELECT * FROM spend_log WHERE request_id = $1",
          [callId],
        );
        return row;
      },
      { timeout: 20_000 },
    )
    .toBeDefined();
  if (row === undefined) {
    throw new Error("no row");
  }
  return { ...row, spend: Number(row.spend) };
}

/** Streams until `finish_reason`, then closes the connection; the id of the call. */
async function leaveAtFinish(model: string, options: object): Promise<string> {
  const key = await gateway.createKey();
  const aborter = new AbortController();
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: aborter.signal,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model,
      stream: true,
      messages: [{ role: "user", content: `[mock]${JSON.stringify(options)}` }],
    }),
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of answer.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    if (text.includes('"finish_reason":"stop"')) {
      break;
    }
  }
  aborter.abort();
  return String(answer.headers.get("x-hearth-call-id"));
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5_000 };

test("a client that closes at the finish reason pays what the provider reports after it", async () => {
  const id = await leaveAtFinish("dear", { usageDelayMs: 1_000, usage: USAGE });
  const row = await rowOf(id);
  expect(row.spend).toBeCloseTo(0.05007, 12);
  expect(row).toMatchObject({
    status: "success",
    prompt_tokens: 10,
    completion_tokens: 5_000,
    metadata: { client_disconnected: true },
  });
});

test("usage that never arrives is awaited for a limited time, then the count is billed", async () => {
  const id = await leaveAtFinish("dear", { usageDelayMs: 120_000 });
  const row = await rowOf(id);
  expect(row.completion_tokens).toBeGreaterThan(0);
  expect(row.completion_tokens).toBeLessThan(100);
  expect(row).toMatchObject({
    status: "success",
    metadata: { client_disconnected: true },
  });
});

test.each([
  ["zeros", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ["the input alone", { prompt_tokens: 10, total_tokens: 10 }],
  ["the output alone", { prompt_tokens: 0, completion_tokens: 3 }],
])(
  "text beside a usage of %s is counted, streamed or not",
  async (_what, usage) => {
    const key = await gateway.createKey();
    const prompt = `[mock]${JSON.stringify({ usage, text: "one two three" })}`;
    for (const stream of [false, true]) {
      const { headers } = await gateway.chat(key, prompt, {
        model: "dear",
        stream,
      });
      const row = await rowOf(headers.get("x-hearth-call-id"));
      expect(row.prompt_tokens).toBeGreaterThan(0);
      expect(row.completion_tokens).toBeGreaterThan(0);
      expect(row.spend).toBeCloseTo(
        row.prompt_tokens * DEAR.input + row.completion_tokens * DEAR.output,
        12,
      );
    }
  },
);

test.each(["reasoning", "reasoning_content"])(
  "%s is counted when the stream breaks off before its usage",
  async (field) => {
    const key = await gateway.createKey();
    const instructions = JSON.stringify({
      field,
      chunkDelayMs: 20,
      cutAfter: 3,
    });
    const answer = await gateway.chat(key, `[mock]${instructions}`, {
      model: "dear",
      stream: true,
    });
    expect(answer.text).toContain("word0");
    const row = await rowOf(answer.headers.get("x-hearth-call-id"));
    expect(row.completion_tokens).toBeGreaterThan(0);
    expect(row.completion_tokens).toBeLessThan(20);
  },
);

test("a call that times out while its provider continues pays for its input, and its row is marked", async () => {
  const key = await gateway.createKey();
  for (const stream of [false, true]) {
    const answer = await gateway.chat(key, '[mock]{"delayMs":1500}', {
      timeout: 0.3,
      stream,
    });
    expect(answer.status).toBe(408);
    const row = await rowOf(answer.headers.get("x-hearth-call-id"));
    expect(row.prompt_tokens).toBeGreaterThan(0);
    expect(row.spend).toBeCloseTo(row.prompt_tokens * INPUT_PRICE, 12);
    expect(row).toMatchObject({
      status: "failure",
      completion_tokens: 0,
      metadata: { estimated: true },
    });
  }
});

test("an attempt that timed out before another deployment answered is paid as well", async () => {
  const key = await gateway.createKey();
  const answer = await gateway.chat(key, '[mock]{"delayMs":2500}', {
    model: "impatient",
    fallbacks: ["mock"],
  });
  expect(answer.status).toBe(200);
  const row = await rowOf(answer.headers.get("x-hearth-call-id"));
  const answered = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;
  const counted = (row.spend - answered) / 0.001;
  expect(counted).toBeGreaterThan(1);
  expect(counted).toBeCloseTo(Math.round(counted), 6);
  expect(Number(answer.headers.get("x-hearth-cost"))).toBeCloseTo(
    row.spend,
    12,
  );
  expect(row.metadata).toMatchObject({
    estimated: true,
    attempts: [{ status: 408 }],
  });
});

test("an attempt that reached no provider costs nothing", async () => {
  const key = await gateway.createKey();
  const answer = await gateway.chat(key, "hello", {
    model: "gone",
    fallbacks: ["mock"],
  });
  expect(answer.status).toBe(200);
  const row = await rowOf(answer.headers.get("x-hearth-call-id"));
  expect(row.spend).toBeCloseTo(10 * INPUT_PRICE + 4 * OUTPUT_PRICE, 12);
  expect(row.metadata).not.toHaveProperty("estimated");
});

test("a call whose outcome could not be flushed is pending until it is in the ledger, as any other", async () => {
  const { journal, ledger, pending } = gateway.running.gateway;
  const write = journal.outcome.bind(journal);
  vi.spyOn(journal, "outcome").mockImplementationOnce((outcome) => {
    void write(outcome);
    return Promise.reject(new JournalFull("the disk is broken"));
  });
  const key = await gateway.createKey({ max_budget: 10 });
  const answer = await gateway.chat(key, "hello");
  expect(answer.status).toBe(503);
  await ledger.flush();
  expect(pending.all()).toEqual([]);
});

test("usage of an unpriced service tier is marked in the row", async () => {
  const key = await gateway.createKey();
  const flex = await gateway.chat(key, '[mock]{"usage":null}', {
    service_tier: "flex",
  });
  const row = await rowOf(flex.headers.get("x-hearth-call-id"));
  expect(row.spend).toBeGreaterThan(0);
  expect(row).toMatchObject({
    unpriced: false,
    metadata: { unpriced_parts: ["service_tier=flex"] },
  });
});

test("a model that is sold by the hour of audio is shown as unpriced", async () => {
  const info = await gateway.request("GET", "/model/info");
  const models = info.json["data"] as unknown as readonly {
    readonly model_name: string;
    readonly model_info: { readonly input_cost_per_token: number | null };
  }[];
  expect(
    models.find(({ model_name }) => model_name === "whisper")?.model_info
      .input_cost_per_token,
  ).toBeNull();
});

test("strict mode reserves the model's maximum for a Claude call without max_tokens, and sends it", async () => {
  const database = await throwAwayDatabase();
  const strict = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: `${modelYaml(provider.url, models(provider.url))}general_settings: { budget_mode: strict }\n`,
  });
  try {
    const worst = 64_000 * OUTPUT_PRICE;
    const poor = await strict.createKey({ max_budget: worst * 0.99 });
    const rich = await strict.createKey({ max_budget: worst * 1.01 });
    const ask = (key: string) => strict.chat(key, "hi", { model: "sonnet" });
    expect((await ask(poor)).json["error"]?.["message"]).toMatch(/max_tokens/);
    await ask(rich);
    const seen = provider.requests.filter(({ path }) =>
      path.endsWith("/v1/messages"),
    );
    expect(seen.map(({ body }) => body["max_tokens"])).toEqual([64_000]);
  } finally {
    await strict.stop();
    await database.drop();
  }
});
