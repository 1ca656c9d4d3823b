import { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { throwAwayDatabase } from "../../../test/servers/database.ts";
import { createGatewayProcess } from "../../../test/servers/gateway-process.ts";
import { MASTER_KEY } from "../../../test/servers/gateway.ts";
import {
  instruct,
  mediaYaml,
  PER_IMAGE,
  PER_IMAGE_TOKEN,
  startMediaFixture,
  type MediaFixture,
} from "./media-fixture.ts";

let media: MediaFixture;

beforeAll(async () => {
  media = await startMediaFixture();
});
afterAll(() => media?.stop());

describe("images", () => {
  const picture = () => new File(["png"], "a.png", { type: "image/png" });

  test("an edit of several images is priced by image", async () => {
    const key = await media.gateway.createKey();
    const answer = await media
      .client(key)
      .images.edit({
        model: "painter",
        image: [picture(), await toFile(Buffer.from("other"), "b.png")],
        prompt: "a hearth",
        n: 2,
      })
      .withResponse();
    expect(answer.data.data).toHaveLength(2);
    const [sent] = media.sentFor(answer.response);
    expect(sent?.body).toMatchObject({ model: "painter", n: "2" });
    expect(sent?.body["image[]"]).toMatchObject([
      { name: "a.png", type: "image/png" },
      { name: "b.png" },
    ]);
    const row = await media.rowOf(answer.response);
    expect(row["call_type"]).toBe("aimage_edit");
    expect(Number(row["spend"])).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("streamed images are priced, too", async () => {
    const key = await media.gateway.createKey();
    const stream = await media.client(key).images.edit({
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
    expect(await media.spendOf(key)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("streamed generations are priced by image, their last one once it is recorded", async () => {
    const key = await media.gateway.createKey();
    const stream = await media.client(key).images.generate({
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
    expect(await media.spendOf(key)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  /** The spend of a stream of two images that ends after some of its events: before each image is a preview of it. */
  async function spendOfCut(model: string, cutAfter: number): Promise<number> {
    const key = await media.gateway.createKey();
    const prompt = instruct({ cutAfter, chunkDelayMs: 50 });
    const fields = { n: 2, stream: true, partial_images: 1 };
    await media.gateway.request(
      "POST",
      "/v1/images/generations",
      { model, prompt, ...fields },
      key,
    );
    return media.spendOf(key);
  }

  test("a stream that breaks off bills the images that were begun", async () => {
    expect(await spendOfCut("painter", 1)).toBeCloseTo(PER_IMAGE, 12);
    expect(await spendOfCut("painter", 2)).toBeCloseTo(PER_IMAGE, 12);
    expect(await spendOfCut("painter", 3)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("a stream that breaks off bills the tokens of an image that was begun", async () => {
    const spends = [];
    for (const cutAfter of [1, 2, 3]) {
      spends.push(await spendOfCut("painter-tokens", cutAfter));
    }
    expect(spends.map((spend) => Math.round(spend / PER_IMAGE_TOKEN))).toEqual([
      6_240, 40, 6_280,
    ]);
  });

  test("a stream that breaks off before it reports usage bills its counted input", async () => {
    expect(await spendOfCut("by-token", 1)).toBeGreaterThan(0);
  });

  test("a call that times out bills the images that it asked for", async () => {
    const key = await media.gateway.createKey();
    const prompt = instruct({ delayMs: 60_000 });
    const { status } = await media.gateway.request(
      "POST",
      "/v1/images/generations",
      { model: "painter", prompt, n: 2, timeout: 0.5 },
      key,
    );
    expect(status).toBe(408);
    expect(await media.spendOf(key)).toBeCloseTo(2 * PER_IMAGE, 12);
  });

  test("kill -9 during a call bills the images that it asked for", async () => {
    const database = await throwAwayDatabase();
    const { requests, url } = media.provider;
    const killed = await createGatewayProcess({
      databaseUrl: database.url,
      yaml: mediaYaml(url),
    });
    try {
      await killed.start();
      const authorization = `Bearer ${MASTER_KEY}`;
      const sent = requests.length;
      const call = fetch(`${killed.url}/v1/images/generations`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify({
          model: "painter",
          prompt: instruct({ delayMs: 60_000 }),
          n: 2,
        }),
      }).catch(() => null);
      await vi.waitFor(() => expect(requests.length).toBe(sent + 1), 20_000);
      await killed.kill();
      await call;
      await killed.start();
      const spend = async () => {
        const answer = await fetch(`${killed.url}/global/spend`, {
          headers: { authorization },
        });
        return ((await answer.json()) as { spend: number }).spend;
      };
      await expect.poll(spend).toBeCloseTo(2 * PER_IMAGE, 12);
    } finally {
      await killed.remove();
      await database.drop();
    }
  });

  test("a variation is priced by image", async () => {
    const key = await media.gateway.createKey();
    const answer = await media
      .client(key)
      .images.createVariation({ model: "painter", image: picture() })
      .withResponse();
    const row = await media.rowOf(answer.response);
    expect(row["call_type"]).toBe("aimage_variation");
    expect(Number(row["spend"])).toBeCloseTo(PER_IMAGE, 12);
  });
});
