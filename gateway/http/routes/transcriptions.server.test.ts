import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silence } from "../../../test/servers/media.ts";
import type { MockInstructions } from "../../../test/servers/mock-instructions.ts";
import {
  instruct,
  PER_SECOND,
  recording,
  startMediaFixture,
  type MediaFixture,
} from "./media-fixture.ts";

let media: MediaFixture;

beforeAll(async () => {
  media = await startMediaFixture();
});
afterAll(() => media?.stop());

describe("transcriptions", () => {
  const PATH = "/v1/audio/transcriptions";

  test("a file reaches the provider unchanged, with the deployment's model and without fields for the gateway", async () => {
    const key = await media.gateway.createKey();
    const audio = recording(1);
    const answer = await media.postForm(
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
    const [sent] = media.sentFor(answer);
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
    expect(await media.rowOf(answer)).toMatchObject({
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
      const key = await media.gateway.createKey();
      const answer = await media.postForm(
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
      const { metadata, ...row } = await media.rowOf(answer);
      expect(Number(row["spend"])).toBeCloseTo(cost, 12);
      expect(metadata?.["estimated"]).toBe(estimated);
      expect(await media.spendOf(key)).toBeCloseTo(cost, 12);
    },
  );

  test("text and subtitles pass unchanged", async () => {
    const key = await media.gateway.createKey();
    const ask = async (format: string) => {
      const fields = { model: "by-second", file: recording(1) };
      const answer = await media.postForm(
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
    const key = await media.gateway.createKey();
    const usage = {
      type: "tokens",
      input_tokens: 20,
      input_token_details: { text_tokens: 0, audio_tokens: 20 },
      output_tokens: 4,
      total_tokens: 24,
    };
    const ask = async (instructions: MockInstructions) =>
      media.rowOf(
        await media.postForm(
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
    const key = await media.gateway.createKey();
    const answer = await media.postForm(
      PATH,
      { model: "by-second", file: recording(1), stream: "True" },
      key,
    );
    expect(answer.headers.get("content-type")).toMatch("text/event-stream");
    const text = await answer.text();
    expect(text).toContain("transcript.text.delta");
    expect(text).toContain("transcript.text.done");
    expect(media.sentFor(answer)[0]?.body["stream"]).toBe("true");
    expect(Number((await media.rowOf(answer))["spend"])).toBeCloseTo(
      3 * PER_SECOND,
      12,
    );
  });

  test.each([
    ["does not tell its length", new File([new Uint8Array(7_500)], "a.bin")],
    ["claims a greater length than it can have", claimingHours(7_500)],
  ])(
    "a file that %s reserves and costs what it can at most be",
    async (_what, file) => {
      const fields = { model: "by-second", file, response_format: "text" };
      const rich = await media.gateway.createKey({ max_budget: 1 });
      const answer = await media.postForm(PATH, fields, rich);
      expect(Number((await media.rowOf(answer))["spend"])).toBeCloseTo(
        10 * PER_SECOND,
        12,
      );
    },
  );

  test("a model without a price is shown as unpriced", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.postForm(
      PATH,
      { model: "unpriced", file: recording(1) },
      key,
    );
    expect(await media.rowOf(answer)).toMatchObject({
      spend: 0,
      unpriced: true,
    });
  });

  test("a translation is a call of its own type", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.postForm(
      "/v1/audio/translations",
      { model: "by-second", file: recording(1) },
      key,
    );
    expect(media.sentFor(answer)[0]?.path).toBe("/v1/audio/translations");
    expect(await media.rowOf(answer)).toMatchObject({
      call_type: "atranslation",
    });
  });

  test("Azure-style clients name the model in the path", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.postForm(
      "/openai/deployments/by-second/audio/transcriptions?api-version=2024-10-21",
      { file: recording(1) },
      key,
    );
    expect(media.sentFor(answer)[0]?.body["model"]).toBe("ear");
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
      "`guardrails` names an unknown guardrail",
    ],
    [
      "a file for the gateway",
      { model: "by-second", "metadata[tags]": recording(1) },
      400,
      "`metadata` is a file",
    ],
    [
      "deep JSON",
      { model: "by-second", metadata: "[".repeat(1_000) },
      400,
      "nested",
    ],
    [
      "much JSON",
      { model: "by-second", metadata: `[${"0,".repeat(200_000)}0]` },
      400,
      "`metadata` is too long",
    ],
    [
      "a long name",
      { model: "by-second", ["a".repeat(300)]: "x" },
      400,
      "name",
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
    const key = await media.gateway.createKey();
    const before = media.provider.requests.length;
    const answer = await media.postForm(
      "/v1/audio/transcriptions",
      fields,
      key,
    );
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain(message);
    expect(media.provider.requests).toHaveLength(before);
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
    const key = await media.gateway.createKey();
    const answer = await fetch(`${media.gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": type },
      body,
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("multipart/form-data");
  });

  test("a file above the limit of bodies", async () => {
    const key = await media.gateway.createKey();
    const fields = { model: "by-second", file: recording(200) };
    const answer = await media.postForm(
      "/v1/audio/transcriptions",
      fields,
      key,
    );
    expect(answer.status).toBe(413);
    expect(await answer.text()).toContain("a smaller file");
  });

  test("a model that the key may not use", async () => {
    const key = await media.gateway.createKey({ models: ["voice"] });
    const fields = { model: "by-second", file: recording(1) };
    const answer = await media.postForm(
      "/v1/audio/transcriptions",
      fields,
      key,
    );
    expect(answer.status).toBe(403);
  });
});

/** A WAV file of a size whose header names one sample of 8 bits a second. */
function claimingHours(bytes: number): File {
  const wav = silence((bytes - silence(0).length) / 8_000);
  wav.writeUInt32LE(1, 24);
  wav.writeUInt32LE(1, 28);
  return new File([new Uint8Array(wav)], "a.wav", { type: "audio/wav" });
}
