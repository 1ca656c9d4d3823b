import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  instruct,
  PER_QUERY,
  startMediaFixture,
  type MediaFixture,
} from "./media-fixture.ts";

let media: MediaFixture;

beforeAll(async () => {
  media = await startMediaFixture();
});
afterAll(() => media?.stop());

describe("rerank", () => {
  const documents = ["short", "the longest document", "a middle one"];
  const rank = async (
    model: string,
    more: Readonly<Record<string, unknown>> = {},
    path = "/v1/rerank",
  ) => {
    const key = await media.gateway.createKey();
    const answer = await media.gateway.request(
      "POST",
      path,
      { model, query: "which", documents, ...more },
      key,
    );
    return {
      answer,
      sent: media.sentFor(answer)[0],
      row: await media.rowOf(answer),
    };
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
