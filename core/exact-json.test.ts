import { expect, test } from "vitest";
import { parseArguments, parseExactly } from "./exact-json.ts";

const ID = "1234567890123456789";

test.each(["input", "args", "arguments", "response", "enum", "const"])(
  "integers of 64 bits in the data of tools are not rounded: `%s`",
  (name) => {
    const text = `{"${name}":{"id":${ID},"ids":[-${ID},7],"at":{"size":1e30}},"n":0.5}`;
    expect(JSON.stringify(parseExactly(text))).toBe(text);
  },
);

test("other values are numbers", () => {
  const text = `{"seed":${ID},"list":[${ID},{"max":-${ID}}],"said":": ${ID}"}`;
  expect(parseExactly(text)).toEqual(JSON.parse(text));
  expect(parseExactly(ID)).toBe(Number(ID));
});

test("in a text of arguments none is rounded", () => {
  const text = `{"id":${ID},"of":{"seed":[${ID}]},"n":1}`;
  expect(JSON.stringify(parseArguments(text))).toBe(text);
});
