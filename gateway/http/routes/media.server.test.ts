import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../../test/servers/gateway.ts";
import { silence } from "../../../test/servers/media.ts";
import type {
  MockInstructions,
  MockProvider,
} from "../../../test/servers/provider.ts";
import { query } from "../../database/pool.ts";

let testbed: Testbed;
let gateway: TestGateway;
let provider: MockProvider;

const PER_SECOND = 0.0001;
const PER_CHARACTER = 0.000015;
const PER_QUERY = 0.002;
const PER_IMAGE = 0.04;

function yaml(url: string): string {
  const alias = (name: string, params: string) => `
  - model_name: ${name}
    provider_params: { api_base: "${url}", api_key: provider-secret-key, local: false, max_retries: 0, ${params} }`;
  return `
model_list:${[
    alias(
      "by-second",
      `model: openai/ear, input_cost_per_second: ${PER_SECOND}`,
    ),
    alias(
      "by-token",
      "model: openai/ear-tokens, input_cost_per_token: 0.000001, input_cost_per_audio_token: 0.000003, output_cost_per_token: 0.000005",
    ),
    alias("unpriced", "model: openai/unknown-model"),
    alias(
      "voice",
      `model: openai/mouth, input_cost_per_character: ${PER_CHARACTER}`,
    ),
    alias(
      "voice-tokens",
      "model: openai/mouth-tokens, input_cost_per_token: 0.000001, output_cost_per_token: 0.00001",
    ),
    alias(
      "painter",
      `model: openai/painter, output_cost_per_image: ${PER_IMAGE}`,
    ),
    alias(
      "runner-rank",
      "model: hosted_vllm/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "voyage-rank",
      "model: voyage/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "tei-rank",
      "model: huggingface/rank, input_cost_per_token: 0.000001, output_cost_per_token: 0",
    ),
    alias(
      "cohere-rank",
      `model: cohere/rank, input_cost_per_query: ${PER_QUERY}`,
    ),
  ].join("")}
router_settings: { allowed_fails: 100000, num_retries: 0 }
general_settings: { max_request_size_mb: 1 }
`;
}

beforeAll(async () => {
  testbed = await startTestbed(yaml);
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

function client(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

function instruct(instructions: MockInstructions): string {
  return `[mock]${JSON.stringify(instructions)}`;
}

/** Posts a form; lists repeat their field. */
async function postForm(
  path: string,
  fields: Readonly<Record<string, string | File | readonly string[]>>,
  key: string,
): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of [value].flat()) {
      form.append(name, one);
    }
  }
  return fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
}

function recording(seconds: number): File {
  return new File([new Uint8Array(silence(seconds))], "speech.wav", {
    type: "audio/wav",
  });
}

type Row = Readonly<Record<string, unknown>> & {
  readonly metadata: Readonly<Record<string, unknown>> | null;
};

async function rowOf({ headers }: Pick<Response, "headers">): Promise<Row> {
  await gateway.running.gateway.ledger.flush();
  const rows = await query<Row>(
    gateway.running.gateway.pool,
    "SELECT * FROM spend_log WHERE request_id = $1",
    [headers.get("x-hearth-call-id")],
  );
  expect(rows).toHaveLength(1);
  return rows[0] as Row;
}

function sentFor({ headers }: Pick<Response, "headers">) {
  const id = headers.get("x-hearth-call-id");
  return provider.requests.filter((request) => request.id === id);
}

async function spendOf(key: string): Promise<number> {
  await gateway.running.gateway.ledger.flush();
  const info = await gateway.request("GET", "/key/info", undefined, key);
  return Number(info.json["info"]?.["spend"]);
}

describe("transcriptions", () => {
  const PATH = "/v1/audio/transcriptions";

  test("a file reaches the provider unchanged, with the deployment's model and without fields for the gateway", async () => {
    const key = await gateway.createKey();
    const audio = recording(1);
    const answer = await postForm(
      PATH,
      {
        model: "by-second",
        file: audio,
        language: "en",
        temperature: "0",
        "timestamp_granularities[]": ["word", "segment"],
        "metadata[tags][]": ["red", "blue"],
        litellm_metadata: '{"user": "eva"}',
        num_retries: "0",
        "fallbacks[]": ["by-token"],
        drop_params: "true",
        api_base: "",
      },
      key,
    );
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ text: "four words in here" });
    const [sent] = sentFor(answer);
    expect(sent?.headers.authorization).toBe("Bearer provider-secret-key");
    expect(sent?.body).toEqual({
      model: "ear",
      language: "en",
      temperature: "0",
      "timestamp_granularities[]": ["word", "segment"],
      file: {
        name: "speech.wav",
        type: "audio/wav",
        hex: silence(1).toString("hex"),
      },
    });
    expect(await rowOf(answer)).toMatchObject({
      call_type: "atranscription",
      status: "success",
      end_user: "eva",
      tags: ["red", "blue"],
    });
  });

  test.each([
    ["seconds of its usage", "json", {}, 3, undefined],
    ["duration of verbose_json", "verbose_json", {}, 2.5, undefined],
    ["length of the file", "text", {}, 2, true],
    ["length of the file", "srt", {}, 2, true],
    ["length of the file", "vtt", {}, 2, true],
    ["length of the file", "json", { usage: null }, 2, true],
  ] as const)(
    "is billed by the %s (%s)",
    async (_what, format, instructions, seconds, estimated) => {
      const key = await gateway.createKey();
      const answer = await postForm(
        PATH,
        {
          model: "by-second",
          file: recording(2),
          response_format: format,
          prompt: instruct(instructions),
        },
        key,
      );
      expect(answer.status).toBe(200);
      const cost = seconds * PER_SECOND;
      expect(Number(answer.headers.get("x-hearth-cost"))).toBeCloseTo(cost, 12);
      const { metadata, ...row } = await rowOf(answer);
      expect(Number(row["spend"])).toBeCloseTo(cost, 12);
      expect(metadata?.["estimated"]).toBe(estimated);
      expect(await spendOf(key)).toBeCloseTo(cost, 12);
    },
  );

  test("text and subtitles pass unchanged", async () => {
    const key = await gateway.createKey();
    const ask = async (format: string) => {
      const fields = { model: "by-second", file: recording(1) };
      const answer = await postForm(
        PATH,
        { ...fields, response_format: format },
        key,
      );
      return [answer.headers.get("content-type"), await answer.text()];
    };
    expect(await ask("text")).toEqual([
      "text/plain; charset=utf-8",
      "four words in here\n",
    ]);
    expect(await ask("srt")).toEqual([
      "text/plain; charset=utf-8",
      "1\n00:00:00,000 --> 00:00:02,000\nfour words in here\n",
    ]);
    expect(await ask("vtt")).toEqual([
      "text/vtt; charset=utf-8",
      "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nfour words in here\n",
    ]);
  });

  test("is billed by reported tokens, and without a report by those of the file's length", async () => {
    const key = await gateway.createKey();
    const usage = {
      type: "tokens",
      input_tokens: 20,
      input_token_details: { text_tokens: 0, audio_tokens: 20 },
      output_tokens: 4,
      total_tokens: 24,
    };
    const ask = async (instructions: MockInstructions) =>
      rowOf(
        await postForm(
          PATH,
          {
            model: "by-token",
            file: recording(2),
            prompt: instruct(instructions),
          },
          key,
        ),
      );
    const reported = await ask({ usage });
    expect(reported).toMatchObject({ prompt_tokens: 20, completion_tokens: 4 });
    expect(Number(reported["spend"])).toBeCloseTo(20 * 3e-6 + 4 * 5e-6, 12);
    expect(reported.metadata?.["estimated"]).toBeUndefined();
    const counted = await ask({ usage: null });
    const text = Number(counted["prompt_tokens"]) - 20;
    expect(text).toBeGreaterThan(0);
    expect(Number(counted["spend"])).toBeCloseTo(
      20 * 3e-6 + text * 1e-6 + Number(counted["completion_tokens"]) * 5e-6,
      12,
    );
    expect(counted.metadata?.["estimated"]).toBe(true);
  });

  test("streams events, whose usage is billed", async () => {
    const key = await gateway.createKey();
    const answer = await postForm(
      PATH,
      { model: "by-second", file: recording(1), stream: "True" },
      key,
    );
    expect(answer.headers.get("content-type")).toMatch("text/event-stream");
    const text = await answer.text();
    expect(text).toContain("transcript.text.delta");
    expect(text).toContain("transcript.text.done");
    expect(sentFor(answer)[0]?.body["stream"]).toBe("true");
    expect(Number((await rowOf(answer))["spend"])).toBeCloseTo(
      3 * PER_SECOND,
      12,
    );
  });

  test("a file that does not tell its length reserves and costs what it can at most be", async () => {
    const unknown = new File([new Uint8Array(7_500)], "a.bin");
    const fields = {
      model: "by-second",
      file: unknown,
      response_format: "text",
    };
    const rich = await gateway.createKey({ max_budget: 1 });
    const answer = await postForm(PATH, fields, rich);
    expect(Number((await rowOf(answer))["spend"])).toBeCloseTo(
      10 * PER_SECOND,
      12,
    );
  });

  test("a model without a price is shown as unpriced", async () => {
    const key = await gateway.createKey();
    const answer = await postForm(
      PATH,
      { model: "unpriced", file: recording(1) },
      key,
    );
    expect(await rowOf(answer)).toMatchObject({ spend: 0, unpriced: true });
  });

  test("a translation is a call of its own type", async () => {
    const key = await gateway.createKey();
    const answer = await postForm(
      "/v1/audio/translations",
      { model: "by-second", file: recording(1) },
      key,
    );
    expect(sentFor(answer)[0]?.path).toBe("/v1/audio/translations");
    expect(await rowOf(answer)).toMatchObject({ call_type: "atranslation" });
  });

  test("Azure-style clients name the model in the path", async () => {
    const key = await gateway.createKey();
    const answer = await postForm(
      "/openai/deployments/by-second/audio/transcriptions?api-version=2024-10-21",
      { file: recording(1) },
      key,
    );
    expect(sentFor(answer)[0]?.body["model"]).toBe("ear");
  });
});

describe("forms that are rejected, before a provider is called", () => {
  test.each([
    ["no model", { file: recording(1) }, 400, "`model` is required"],
    ["two models", { model: ["by-second", "voice"] }, 400, "`model` must be"],
    ["a hidden model", { model: "by-second", "model[]": "x" }, 400, "`model`"],
    ["no file", { model: "by-second" }, 400, "`file` must be a file"],
    ["a text as file", { model: "by-second", file: "x" }, 400, "`file`"],
    [
      "an empty file",
      { model: "by-second", file: new File([], "a.wav") },
      400,
      "`file` must be a file that is not empty",
    ],
    [
      "guardrails",
      { model: "by-second", file: recording(1), "guardrails[]": "pii" },
      400,
      "`guardrails` is not supported",
    ],
    [
      "an address",
      { model: "by-second", file: recording(1), api_base: "http://evil" },
      403,
      "`api_base` is not permitted",
    ],
    [
      "stream",
      { model: "by-second", file: recording(1), stream: "1" },
      400,
      "`stream` must be true or false",
    ],
  ] as const)("%s", async (_what, fields, status, message) => {
    const key = await gateway.createKey();
    const before = provider.requests.length;
    const answer = await postForm("/v1/audio/transcriptions", fields, key);
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain(message);
    expect(provider.requests).toHaveLength(before);
  });

  test.each([
    ["JSON", "application/json", '{"model":"by-second"}'],
    ["no boundary", "multipart/form-data", "x"],
    [
      "cut short",
      "multipart/form-data; boundary=b",
      '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nby-sec',
    ],
  ])("%s", async (_what, type, body) => {
    const key = await gateway.createKey();
    const answer = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": type },
      body,
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("multipart/form-data");
  });

  test("a file above the limit of bodies", async () => {
    const key = await gateway.createKey();
    const fields = { model: "by-second", file: recording(200) };
    const answer = await postForm("/v1/audio/transcriptions", fields, key);
    expect(answer.status).toBe(413);
    expect(await answer.text()).toContain("a smaller file");
  });

  test("a model that the key may not use", async () => {
    const key = await gateway.createKey({ models: ["voice"] });
    const fields = { model: "by-second", file: recording(1) };
    const answer = await postForm("/v1/audio/transcriptions", fields, key);
    expect(answer.status).toBe(403);
  });
});

describe("images", () => {
  const picture = () => new File(["png"], "a.png", { type: "image/png" });

  test("an edit of several images is priced by image", async () => {
    const key = await gateway.createKey();
    const answer = await client(key)
      .images.edit({
        model: "painter",
        image: [picture(), await toFile(Buffer.from("other"), "b.png")],
        prompt: "a hearth",
        n: 2,
      })
      .withResponse();
    expect(answer.data.data).toHaveLength(2);
    const [sent] = sentFor(answer.response);
    expect(sent?.body).toMatchObject({ model: "painter", n: "2" });
    expect(sent?.body["image[]"]).toMatchObject([
      { name: "a.png", type: "image/png" },
      { name: "b.png" },
    ]);
    const row = await rowOf(answer.response);
    expect(row["call_type"]).toBe("aimage_edit");
    expect(Number(row["spend"])).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("streamed images are priced, too", async () => {
    const key = await gateway.createKey();
    const stream = await client(key).images.edit({
      model: "painter",
      image: picture(),
      prompt: "a hearth",
      n: 2,
      stream: true,
    });
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
    }
    expect(types).toEqual(["image_edit.completed", "image_edit.completed"]);
    expect(await spendOf(key)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("streamed generations are priced by image, their last one once it is recorded", async () => {
    const key = await gateway.createKey();
    const stream = await client(key).images.generate({
      model: "painter",
      prompt: "a hearth",
      n: 2,
      stream: true,
    });
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
    }
    expect(types).toEqual([
      "image_generation.completed",
      "image_generation.completed",
    ]);
    expect(await spendOf(key)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("a variation is priced by image", async () => {
    const key = await gateway.createKey();
    const answer = await client(key)
      .images.createVariation({ model: "painter", image: picture() })
      .withResponse();
    const row = await rowOf(answer.response);
    expect(row["call_type"]).toBe("aimage_variation");
    expect(Number(row["spend"])).toBeCloseTo(PER_IMAGE, 12);
  });
});

describe("speech", () => {
  test("audio arrives unchanged and is billed by character", async () => {
    const key = await gateway.createKey();
    const answer = await client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input: "Hello 🔥",
    });
    expect(answer.headers.get("content-type")).toBe("audio/wav");
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(silence(2));
    expect(sentFor(answer)[0]?.body).toEqual({
      model: "mouth",
      voice: "alloy",
      input: "Hello 🔥",
    });
    const row = await rowOf(answer);
    expect(row["call_type"]).toBe("aspeech");
    expect(Number(row["spend"])).toBeCloseTo(7 * PER_CHARACTER, 12);
    expect(row.metadata).toBeNull();
  });

  test.each([
    ["events", { stream_format: "sse" }, 10 * 1e-6 + 40 * 1e-5, undefined],
    ["the length of a file", {}, 1e-6 + 40 * 1e-5, true],
    ["raw samples", { response_format: "pcm" }, 1e-6 + 40 * 1e-5, true],
  ] as const)(
    "at a price by token is billed by %s",
    async (_what, fields, cost, estimated) => {
      const key = await gateway.createKey();
      const answer = await client(key).audio.speech.create({
        model: "voice-tokens",
        voice: "alloy",
        input: "hello hello hello",
        ...fields,
      });
      await answer.arrayBuffer();
      const row = await rowOf(answer);
      expect(row["completion_tokens"]).toBe(40);
      expect(row.metadata?.["estimated"]).toBe(estimated);
      const input =
        estimated === true ? (Number(row["prompt_tokens"]) - 1) * 1e-6 : 0;
      expect(Number(row["spend"])).toBeCloseTo(cost + input, 12);
    },
  );

  test("audio that breaks off ends the connection and is billed", async () => {
    const key = await gateway.createKey();
    const input = instruct({ cutAfter: 2, chunkDelayMs: 200 });
    const answer = await client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input,
    });
    await expect(answer.arrayBuffer()).rejects.toThrow();
    const row = await rowOf(answer);
    expect(row["status"]).toBe("failure");
    expect(Number(row["spend"])).toBeCloseTo(input.length * PER_CHARACTER, 12);
  });

  test("a client that leaves stops the provider and pays", async () => {
    const key = await gateway.createKey();
    const input = instruct({ chunkDelayMs: 200 });
    const answer = await client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input,
    });
    await answer.body?.cancel();
    await expect.poll(() => sentFor(answer)[0]?.aborted).toBe(true);
    await expect.poll(() => spendOf(key)).toBeGreaterThan(0);
    const row = await rowOf(answer);
    expect(row.metadata).toEqual({ client_disconnected: true });
    expect(Number(row["spend"])).toBeCloseTo(input.length * PER_CHARACTER, 12);
  });

  test("an error before the audio has the shape of errors, and costs nothing", async () => {
    const key = await gateway.createKey();
    const answer = await gateway.request(
      "POST",
      "/v1/audio/speech",
      { model: "voice", voice: "x", input: instruct({ status: 400 }) },
      key,
    );
    expect(answer.status).toBe(400);
    expect(answer.json["error"]?.["message"]).toContain("voice:");
    expect(await rowOf(answer)).toMatchObject({ status: "failure", spend: 0 });
  });
});

describe("rerank", () => {
  const documents = ["short", "the longest document", "a middle one"];
  const rank = async (
    model: string,
    more: Readonly<Record<string, unknown>> = {},
    path = "/v1/rerank",
  ) => {
    const key = await gateway.createKey();
    const answer = await gateway.request(
      "POST",
      path,
      { model, query: "which", documents, ...more },
      key,
    );
    return { answer, sent: sentFor(answer)[0], row: await rowOf(answer) };
  };
  const ORDER = [{ index: 1 }, { index: 2 }, { index: 0 }];

  test.each([
    ["runner-rank", "/v1/rerank", { total_tokens: 30 }, 30e-6],
    ["voyage-rank", "/v1/rerank", { total_tokens: 30 }, 30e-6],
    ["cohere-rank", "/v2/rerank", { search_units: 1 }, PER_QUERY],
  ] as const)(
    "%s answers in Cohere's shape and is priced",
    async (model, path, units, cost) => {
      const { answer, sent, row } = await rank(model);
      expect(answer.status).toBe(200);
      expect(answer.json["results"]).toMatchObject(ORDER);
      expect(answer.json["results"]?.[0]).toEqual({
        index: 1,
        relevance_score: 0.2,
      });
      expect(answer.json["meta"]?.["billed_units"]).toEqual(units);
      expect(sent).toMatchObject({ path, body: { model: "rank", documents } });
      expect(row["call_type"]).toBe("arerank");
      expect(Number(row["spend"])).toBeCloseTo(cost, 12);
    },
  );

  test("Text Embeddings Inference gets and answers its own shape", async () => {
    const { answer, sent, row } = await rank("tei-rank", {
      top_n: 2,
      return_documents: true,
    });
    expect(sent).toMatchObject({ path: "/rerank" });
    expect(sent?.body).toEqual({
      query: "which",
      texts: documents,
      truncate: true,
    });
    expect(answer.json["results"]).toEqual([
      { index: 1, relevance_score: 0.2, document: { text: documents[1] } },
      { index: 2, relevance_score: 0.12, document: { text: documents[2] } },
    ]);
    expect(Number(row["prompt_tokens"])).toBeGreaterThan(0);
    expect(Number(row["spend"])).toBeCloseTo(
      Number(row["prompt_tokens"]) * 1e-6,
      12,
    );
  });

  test("top_n, and documents that are objects", async () => {
    const objects = [{ text: "a" }, { title: "bb", year: 2 }];
    const { answer, sent } = await rank("voyage-rank", {
      documents: objects,
      top_n: 1,
      return_documents: true,
    });
    expect(sent?.body).toMatchObject({
      documents: ["a", "title: bb\nyear: 2"],
      top_k: 1,
    });
    expect(answer.json["results"]).toMatchObject([
      { index: 1, document: objects[1] },
    ]);
  });

  test.each(["/rerank", "/v2/rerank"])("also at %s", async (path) => {
    const { answer } = await rank("runner-rank", {}, path);
    expect(answer.status).toBe(200);
  });

  test("many and long documents count as several searches where none are reported", async () => {
    const { row } = await rank("cohere-rank", {
      documents: Array.from({ length: 101 }, () => "x"),
      query: instruct({ usage: {} }),
    });
    expect(Number(row["spend"])).toBeCloseTo(2 * PER_QUERY, 12);
  });
});

describe("budgets", () => {
  test.each([
    [
      "audio",
      (key: string) =>
        postForm(
          "/v1/audio/transcriptions",
          { model: "by-second", file: recording(2) },
          key,
        ),
    ],
    [
      "speech",
      (key: string) =>
        gateway.request(
          "POST",
          "/v1/audio/speech",
          { model: "voice", voice: "x", input: "x".repeat(20) },
          key,
        ),
    ],
    [
      "rankings",
      (key: string) =>
        gateway.request(
          "POST",
          "/v1/rerank",
          { model: "cohere-rank", query: "q", documents: ["a"] },
          key,
        ),
    ],
    [
      "edits",
      (key: string) =>
        postForm(
          "/v1/images/edits",
          { model: "painter", prompt: "p", image: new File(["x"], "a.png") },
          key,
        ),
    ],
  ] as const)(
    "%s: no call is sent once the budget is spent, and its overshoot is one call at most",
    async (_what, ask) => {
      const key = await gateway.createKey({ max_budget: 0.0003 });
      const statuses: number[] = [];
      for (let calls = 0; calls < 3; calls++) {
        statuses.push((await ask(key)).status);
      }
      const all = await Promise.all(
        Array.from({ length: 5 }, async () => (await ask(key)).status),
      );
      expect(statuses[0]).toBe(200);
      expect(all).toEqual([400, 400, 400, 400, 400]);
    },
  );

  test("calls in flight reserve their seconds: of parallel ones only those that fit are sent", async () => {
    const key = await gateway.createKey({ max_budget: 2.5 * 100 * PER_SECOND });
    const before = provider.requests.length;
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        postForm(
          "/v1/audio/transcriptions",
          {
            model: "by-second",
            file: recording(100),
            prompt: instruct({
              delayMs: 300,
              usage: { type: "duration", seconds: 100 },
            }),
          },
          key,
        ),
      ),
    );
    const admitted = answers.filter(({ status }) => status === 200).length;
    expect(admitted).toBe(3);
    expect(provider.requests.length - before).toBe(admitted);
    expect(await spendOf(key)).toBeCloseTo(3 * 100 * PER_SECOND, 9);
  });
});
