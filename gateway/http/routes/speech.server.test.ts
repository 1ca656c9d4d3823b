import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silence } from "../../../test/servers/media.ts";
import {
  instruct,
  PER_CHARACTER,
  startMediaFixture,
  type MediaFixture,
} from "./media-fixture.ts";

let media: MediaFixture;

beforeAll(async () => {
  media = await startMediaFixture();
});
afterAll(() => media?.stop());

describe("speech", () => {
  test("audio arrives unchanged and is billed by character", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input: "Hello 🔥",
    });
    expect(answer.headers.get("content-type")).toBe("audio/wav");
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(silence(2));
    expect(media.sentFor(answer)[0]?.body).toEqual({
      model: "mouth",
      voice: "alloy",
      input: "Hello 🔥",
    });
    const row = await media.rowOf(answer);
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
      const key = await media.gateway.createKey();
      const answer = await media.client(key).audio.speech.create({
        model: "voice-tokens",
        voice: "alloy",
        input: "hello hello hello",
        ...fields,
      });
      await answer.arrayBuffer();
      const row = await media.rowOf(answer);
      expect(row["completion_tokens"]).toBe(40);
      expect(row.metadata?.["estimated"]).toBe(estimated);
      const input =
        estimated === true ? (Number(row["prompt_tokens"]) - 1) * 1e-6 : 0;
      expect(Number(row["spend"])).toBeCloseTo(cost + input, 12);
    },
  );

  test("audio that breaks off ends the connection and is billed", async () => {
    const key = await media.gateway.createKey();
    const input = instruct({ cutAfter: 2, chunkDelayMs: 200 });
    const answer = await media.client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input,
    });
    await expect(answer.arrayBuffer()).rejects.toThrow();
    const row = await media.rowOf(answer);
    expect(row["status"]).toBe("failure");
    expect(Number(row["spend"])).toBeCloseTo(input.length * PER_CHARACTER, 12);
  });

  test("events that break off before their usage are billed by the length of their audio", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.client(key).audio.speech.create({
      model: "voice-tokens",
      voice: "alloy",
      input: instruct({ cutAfter: 1, chunkDelayMs: 50 }),
      stream_format: "sse",
    });
    await answer.text();
    const row = await media.rowOf(answer);
    expect(row).toMatchObject({
      status: "failure",
      completion_tokens: 40,
      metadata: { estimated: true },
    });
    const input = Number(row["prompt_tokens"]) * 1e-6;
    expect(Number(row["spend"])).toBeCloseTo(input + 40 * 1e-5, 12);
  });

  test("a client that leaves stops the provider and pays", async () => {
    const key = await media.gateway.createKey();
    const input = instruct({ chunkDelayMs: 60_000 });
    const answer = await media.client(key).audio.speech.create({
      model: "voice",
      voice: "alloy",
      input,
    });
    await answer.body?.cancel();
    const patiently = { timeout: 10_000 };
    await expect
      .poll(() => media.sentFor(answer)[0]?.aborted, patiently)
      .toBe(true);
    await expect.poll(() => media.spendOf(key), patiently).toBeGreaterThan(0);
    const row = await media.rowOf(answer);
    expect(row.metadata).toEqual({ client_disconnected: true });
    expect(Number(row["spend"])).toBeCloseTo(input.length * PER_CHARACTER, 12);
  });

  test("an error before the audio has the shape of errors, and costs nothing", async () => {
    const key = await media.gateway.createKey();
    const answer = await media.gateway.request(
      "POST",
      "/v1/audio/speech",
      { model: "voice", voice: "x", input: instruct({ status: 400 }) },
      key,
    );
    expect(answer.status).toBe(400);
    expect(answer.json["error"]?.["message"]).toContain("voice:");
    expect(await media.rowOf(answer)).toMatchObject({
      status: "failure",
      spend: 0,
    });
  });
});
