import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  instruct,
  PER_IMAGE_TOKEN,
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

describe("budgets", () => {
  test.each([
    [
      "audio",
      (key: string) =>
        media.postForm(
          "/v1/audio/transcriptions",
          { model: "by-second", file: recording(2) },
          key,
        ),
    ],
    [
      "speech",
      (key: string) =>
        media.gateway.request(
          "POST",
          "/v1/audio/speech",
          { model: "voice", voice: "x", input: "x".repeat(20) },
          key,
        ),
    ],
    [
      "rankings",
      (key: string) =>
        media.gateway.request(
          "POST",
          "/v1/rerank",
          { model: "cohere-rank", query: "q", documents: ["a"] },
          key,
        ),
    ],
    [
      "edits",
      (key: string) =>
        media.postForm(
          "/v1/images/edits",
          { model: "painter", prompt: "p", image: new File(["x"], "a.png") },
          key,
        ),
    ],
  ] as const)(
    "%s: no call is sent once the budget is spent, and its overshoot is one call at most",
    async (_what, ask) => {
      const key = await media.gateway.createKey({ max_budget: 0.0003 });
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

  /** Six calls at once, of 100 seconds each; returns how many were sent. */
  async function sentAtOnce(key: string): Promise<number> {
    const before = media.provider.requests.length;
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        media.postForm(
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
    expect(media.provider.requests.length - before).toBe(admitted);
    return admitted;
  }

  test("calls in flight reserve their seconds: of parallel ones only those that fit are sent", async () => {
    const key = await media.gateway.createKey({
      max_budget: 2.5 * 100 * PER_SECOND,
    });
    expect(await sentAtOnce(key)).toBe(3);
    expect(await media.spendOf(key)).toBeCloseTo(3 * 100 * PER_SECOND, 9);
  });

  test("so they do after a call whose speed would make its speech infinitely long", async () => {
    const key = await media.gateway.createKey({
      max_budget: 2.5 * 100 * PER_SECOND,
    });
    const spoken = await media.gateway.request(
      "POST",
      "/v1/audio/speech",
      { model: "voice", voice: "x", input: "x", speed: Number.MIN_VALUE },
      key,
    );
    expect(spoken.status).toBe(200);
    expect(await sentAtOnce(key)).toBe(3);
  });

  test.each([
    [
      "generated",
      (prompt: string, key: string) =>
        media.gateway.request(
          "POST",
          "/v1/images/generations",
          { model: "painter-tokens", prompt },
          key,
        ),
    ],
    [
      "edited",
      (prompt: string, key: string) =>
        media.postForm(
          "/v1/images/edits",
          {
            model: "painter-tokens",
            prompt,
            image: new File(["x"], "a.png"),
          },
          key,
        ),
    ],
    [
      "sent",
      (prompt: string, key: string) => {
        const image = new File(["x"], "a.png");
        return media.postForm(
          "/v1/images/edits",
          { model: "editor-tokens", prompt, "image[]": [image, image] },
          key,
        );
      },
      { input_tokens: 4_160, input_tokens_details: { image_tokens: 4_160 } },
    ],
  ] as const)(
    "%s images that are billed by token reserve their tokens",
    async (_what, ask, reported: object = { output_tokens: 4_160 }) => {
      const tokens = 4_160;
      const cost = tokens * PER_IMAGE_TOKEN;
      const key = await media.gateway.createKey({ max_budget: cost });
      const before = media.provider.requests.length;
      const usage = { input_tokens: 1, output_tokens: 0, ...reported };
      const prompt = instruct({ delayMs: 300, usage });
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => ask(prompt, key)),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(media.provider.requests.length - before).toBe(1);
      expect(await media.spendOf(key)).toBeCloseTo(cost, 9);
    },
  );
});
