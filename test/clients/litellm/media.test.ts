import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { query } from "../../../gateway/database/pool.ts";
import type { TestGateway } from "../../servers/gateway.ts";
import { silence } from "../../servers/media.ts";
import { collected } from "../testbed.ts";
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

/** LiteLLM's routes for audio, images and rankings, with OpenAI's SDK, on two instances. */

let instances: TwoInstances;
let both: readonly TestGateway[];

const yaml = (url: string) => `
model_list:
  - model_name: ears
    litellm_params:
      { model: openai/whisper-x, api_base: "${url}", api_key: provider-key, input_cost_per_second: 0.0001 }
    model_info: { mode: audio_transcription }
  - model_name: voice
    litellm_params:
      { model: openai/tts-x, api_base: "${url}", api_key: provider-key, input_cost_per_character: 0.00001 }
    model_info: { mode: audio_speech }
  - model_name: painter
    litellm_params:
      { model: openai/image-x, api_base: "${url}", api_key: provider-key, output_cost_per_image: 0.02 }
    model_info: { mode: image_edit }
  - model_name: ranks
    litellm_params:
      { model: cohere/rerank-x, api_base: "${url}", api_key: provider-key, input_cost_per_query: 0.002 }
    model_info: { mode: rerank }
  - model_name: broken
    litellm_params:
      { model: openai/whisper-x, api_base: "http://127.0.0.1:9/v1", api_key: provider-key }
router_settings: { num_retries: 0, fallbacks: [{ broken: [ears] }] }
`;

beforeAll(async () => {
  instances = await startTwoInstances(yaml);
  both = [instances.one, instances.other];
});
afterAll(() => instances?.stop());

function client(at: TestGateway, apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${at.url}/v1`, maxRetries: 0 });
}

const recording = (seconds: number) =>
  toFile(silence(seconds), "speech.wav", { type: "audio/wav" });
const picture = () =>
  toFile(Buffer.from("png"), "a.png", { type: "image/png" });

async function rows(): Promise<
  readonly { readonly request_id: string; readonly spend: string }[]
> {
  for (const { running } of both) {
    await running.gateway.ledger.flush();
  }
  return query(
    instances.one.running.gateway.pool,
    "SELECT request_id, spend FROM spend_log WHERE status = 'success'",
  );
}

test("each route works on both instances, and the ledger equals the provider's record", async () => {
  const key = await instances.one.createKey({ max_budget: 10 });
  for (const at of both) {
    const openai = client(at, key);
    const { text } = await openai.audio.transcriptions.create({
      model: "ears",
      file: await recording(1),
    });
    expect(text).toBe("four words in here");
    const events = await collected(
      await openai.audio.transcriptions.create({
        model: "ears",
        file: await recording(1),
        stream: true,
      }),
    );
    expect(events.map(({ type }) => type)).toEqual([
      "transcript.text.delta",
      "transcript.text.done",
    ]);
    const subtitles = await openai.audio.transcriptions.create({
      model: "ears",
      file: await recording(1),
      response_format: "vtt",
    });
    expect(subtitles).toMatch(/^WEBVTT/);
    const translated = await openai.audio.translations.create({
      model: "ears",
      file: await recording(1),
    });
    expect(translated.text).toBe("four words in here");
    const spoken = await openai.audio.speech.create({
      model: "voice",
      voice: "alloy",
      input: "Hello",
    });
    expect(Buffer.from(await spoken.arrayBuffer())).toEqual(silence(2));
    const edited = await openai.images.edit({
      model: "painter",
      image: await picture(),
      prompt: "a hearth",
    });
    expect(edited.data).toHaveLength(1);
    const varied = await openai.images.createVariation({
      model: "painter",
      image: await picture(),
    });
    expect(varied.data).toHaveLength(1);
    const ranked = await at.request(
      "POST",
      "/rerank",
      { model: "ranks", query: "q", documents: ["a", "bb"], top_n: 1 },
      key,
    );
    expect(ranked.json["results"]).toEqual([
      { index: 1, relevance_score: 0.02 },
    ]);
  }
  const recorded = await rows();
  const finished = instances.provider.requests.filter((one) => one.finished);
  expect(recorded.map((row) => row.request_id).toSorted()).toEqual(
    finished.map((one) => one.id).toSorted(),
  );
  const sum = recorded.reduce((all, { spend }) => all + Number(spend), 0);
  const each = 3 * 0.0003 + 0.0001 + 5 * 1e-5 + 2 * 0.02 + 0.002;
  expect(sum).toBeCloseTo(2 * each, 9);
  const info = await instances.other.request(
    "GET",
    "/key/info",
    undefined,
    key,
  );
  expect(info.json["info"]?.["spend"]).toBeCloseTo(sum, 9);
});

test("of parallel calls on both instances, only those within the budget are sent", async () => {
  const key = await instances.one.createKey({ max_budget: 0.05 });
  const before = instances.provider.requests.length;
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async (_, at) => {
      const gateway = both[at % 2] as TestGateway;
      return client(gateway, key)
        .images.edit({
          model: "painter",
          image: await picture(),
          prompt: `[mock]{"delayMs":200}`,
        })
        .then(
          () => 200,
          (error: unknown) => (error as { status: number }).status,
        );
    }),
  );
  const sent = instances.provider.requests.length - before;
  expect(statuses.filter((status) => status === 200)).toHaveLength(sent);
  expect(sent).toBe(3);
});

test("fallbacks get the file and the text, too", async () => {
  const key = await instances.one.createKey();
  const answer = await client(instances.one, key).audio.transcriptions.create({
    model: "broken",
    file: await recording(1),
    prompt: "names",
  });
  expect(answer.text).toBe("four words in here");
  expect(instances.provider.requests.at(-1)?.body).toMatchObject({
    model: "whisper-x",
    prompt: "names",
    file: { hex: silence(1).toString("hex") },
  });
});

describe("LiteLLM's fields in a form", () => {
  test("take effect, and none reaches the provider", async () => {
    const key = await instances.one.createKey();
    const fields = {
      metadata: { tags: ["a", "b"], generation_name: "g" },
      litellm_metadata: { user: "eva" },
      tags: ["c"],
      num_retries: 0,
      timeout: 30,
      caching: true,
      drop_params: true,
      "no-log": true,
      litellm_session_id: "session",
      input_cost_per_second: 0,
      mock_testing_fallbacks: true,
      fallbacks: [{ model: "ears", prompt: "x" }],
      model_info: { id: "x" },
      guardrails: [],
    };
    const openai = client(instances.one, key);
    const file = await recording(1);
    await openai.audio.transcriptions.create({ model: "ears", file });
    const plain = instances.provider.requests.at(-1)?.body;
    const { response } = await openai.audio.transcriptions
      .create({ model: "ears", file, ...fields })
      .withResponse();
    expect(instances.provider.requests.at(-1)?.body).toEqual(plain);
    await rows();
    const { json } = await instances.one.request(
      "GET",
      `/spend/logs?request_id=${response.headers.get("x-hearth-call-id")}`,
    );
    expect(json[0]).toMatchObject({
      call_type: "atranscription",
      end_user: "eva",
      session_id: "session",
    });
    expect(json[0]?.["request_tags"]).toEqual(["c", "a", "b"]);
    expect(json[0]?.["spend"]).toBeCloseTo(0.0003, 12);
  });

  test("guardrails are rejected: the call would be unguarded", async () => {
    const key = await instances.one.createKey();
    const body = { model: "ears", file: await recording(1) };
    const guarded = { ...body, guardrails: ["pii"] };
    await expect(
      client(instances.one, key).audio.transcriptions.create(guarded),
    ).rejects.toMatchObject({ status: 400, param: "guardrails" });
  });
});

test("models of each mode are checked by a call of that mode", async () => {
  for (const [model, path] of [
    ["ears", "/v1/audio/transcriptions"],
    ["voice", "/v1/audio/speech"],
    ["ranks", "/v2/rerank"],
  ] as const) {
    const { json } = await instances.one.request(
      "GET",
      `/health?model=${model}&deep=true`,
    );
    expect(json).toMatchObject({ healthy_count: 1 });
    expect(instances.provider.requests.at(-1)?.path).toBe(path);
  }
});
