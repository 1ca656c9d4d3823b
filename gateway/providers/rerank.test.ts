import { expect, test } from "vitest";
import { rerankAnswer, textsOfDocuments } from "./rerank.ts";

test("a document is its text, its named fields, else all of its fields", () => {
  const documents = ["a", { text: "b", title: "c" }, { title: "d", year: 5 }];
  expect(textsOfDocuments(documents, undefined)).toEqual([
    "a",
    "b",
    "title: d\nyear: 5",
  ]);
  expect(textsOfDocuments(documents, ["title"])).toEqual([
    "a",
    "title: c",
    "title: d",
  ]);
});

test("as many documents as fit into a body, and as many fields to rank by, are read", () => {
  const documents = Array.from({ length: 200_000 }, () => ({ title: "a" }));
  const fields = documents.map((_, at) => `field_${at}`);
  expect(textsOfDocuments(documents, fields)).toHaveLength(200_000);
});

test.each([
  [3, 3],
  [-1, undefined],
  [1e30, undefined],
])("of %d reported search units, %d are billed", (reported, searchUnits) => {
  const answer = {
    results: [],
    meta: {
      billed_units: { search_units: reported },
      tokens: { input_tokens: 9 },
    },
  };
  const { usage } = rerankAnswer(Buffer.from(JSON.stringify(answer))).facts;
  expect(usage?.searchUnits).toBe(searchUnits);
  expect(usage?.inputTokens).toBe(9);
});
