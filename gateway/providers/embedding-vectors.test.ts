import fc from "fast-check";
import { expect, test } from "vitest";
import { readEmbeddings, writeEmbeddings } from "./embedding-vectors.ts";

const vectors = fc.array(
  fc.oneof(
    fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })),
    fc.base64String(),
  ),
  { maxLength: 5 },
);

test("vectors are extracted unchanged, whatever the white space around them", () => {
  fc.assert(
    fc.property(
      vectors,
      fc.string(),
      fc.constantFrom(undefined, 2),
      (list, model, indent) => {
        const answer = {
          object: "list",
          data: list.map((embedding, index) => ({
            object: "embedding",
            index,
            embedding,
          })),
          model,
          usage: { prompt_tokens: 3, total_tokens: 3 },
        };
        const read = readEmbeddings(
          Buffer.from(JSON.stringify(answer, null, indent)),
        );
        expect(read?.rest["model"]).toBe(model);
        expect(read?.rest["usage"]).toEqual(answer.usage);
        expect(read?.vectors?.map((text) => JSON.parse(text))).toEqual(
          JSON.parse(JSON.stringify(list)),
        );
      },
    ),
  );
});

test("written vectors are read back in order", () => {
  const written = writeEmbeddings(["[1,2]", '"AAAA"'], "módel", 7);
  const read = readEmbeddings(written);
  expect(read?.vectors).toEqual(["[1,2]", '"AAAA"']);
  expect(read?.rest["model"]).toBe("módel");
});

test("vectors come in the order of their indexes", () => {
  const data = [
    { index: 1, embedding: [2] },
    { index: 0, embedding: [1] },
  ];
  const read = readEmbeddings(Buffer.from(JSON.stringify({ data })));
  expect(read?.vectors).toEqual(["[1]", "[2]"]);
});

test.each([
  '{"data":[{"index":5,"embedding":[1]}]}',
  '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}',
  '{"data":[{"index":0}]}',
  '{"data":[1]}',
  '{"data":[{"embedding":{"toString":1}}]}',
  '{"embedding":[1]}',
  "{}",
])("%s has no vectors", (text) => {
  expect(readEmbeddings(Buffer.from(text))?.vectors).toBeNull();
});

test("bytes that are not JSON give null", () => {
  expect(readEmbeddings(Buffer.from("oh no"))).toBeNull();
});

test("vectors without an end are no JSON, however many there are", () => {
  const text = '{"embedding":['.repeat(300_000);
  expect(readEmbeddings(Buffer.from(text))).toBeNull();
});
