import { expect, test } from "vitest";
import { readTools } from "./tools.ts";

const clock = { type: "function", function: { name: "clock" } };

test("tools are read as OpenAI's API takes them, and may be left out", () => {
  const tools = [
    clock,
    {
      type: "function",
      function: {
        name: "weather",
        description: "Tells the weather.",
        parameters: { type: "object", properties: {} },
        strict: true,
      },
    },
  ];
  expect(readTools(JSON.stringify(tools))).toEqual({ kind: "read", tools });
  expect(readTools(" \n")).toEqual({ kind: "read", tools: [] });
});

test.each([
  ["[\n  {a}\n]", `at line 2, column 4: expected property name or '}'`],
  ["[{}, sunny]", `at line 1, column 6: unexpected "s"`],
  [
    `[{"type": "function", "function": {"name": "x", "description": what is this}}]`,
    `at line 1, column 64: unexpected "w"`,
  ],
  [
    `[{"name": 1}\n{}]`,
    `at line 2, column 1: expected ',' or ']' after array element`,
  ],
  [
    "[] x",
    `at line 1, column 4: unexpected non-whitespace character after JSON`,
  ],
])("invalid JSON is named by line and column: %s", (text, mistake) => {
  expect(readTools(text)).toEqual({
    kind: "mistake",
    mistake: `Tools: invalid JSON ${mistake}.`,
  });
});

test.each(["[{", `[{"type": "func`, "[1, ", "[tru"])(
  "JSON that ends too early is named by its end: %s",
  (text) => {
    expect(readTools(text)).toEqual({
      kind: "mistake",
      mistake: `Tools: invalid JSON: it ends too early, at line 1, column ${text.length + 1}.`,
    });
  },
);

test.each([
  [{}, `Tools must be a list such as `],
  [[], `Tools must contain at least one tool.`],
  [[clock, { name: "x" }], `Tools: [1].type must be "function".`],
  [[clock, { type: "function" }], `Tools: [1].function must be an object.`],
  [
    [{ type: "function", function: { name: "a b" } }],
    `Tools: [0].function.name must be 1 to 64 letters`,
  ],
  [
    [{ type: "function", function: { name: "a", parameters: "none" } }],
    `Tools: [0].function.parameters must be an object.`,
  ],
])("a wrong tool is named by its place: %j", (typed, mistake) => {
  const read = readTools(JSON.stringify(typed));
  expect(read).toEqual({
    kind: "mistake",
    mistake: expect.stringContaining(mistake),
  });
});
