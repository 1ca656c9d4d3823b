import { expect, test } from "vitest";
import { AnswerSlots } from "./answer-slots.ts";
import type { Answer } from "./ask-model.ts";
import { chatBody, readPlaygroundForm } from "./playground-form.ts";
import { viewAnswer, viewPlayground } from "./playground-view.ts";

const answer: Answer = {
  model: "mock",
  callId: "call/1",
  text: "Noon.",
  reasoning: "",
  tools: [{ name: "clock", arguments: '{"at":1}' }],
  finish: "stop",
  usage: { input: 1234, output: 5 },
  firstTokenMs: 350,
  totalMs: 2100,
  error: null,
};

test("an answer shows tokens and times, and its cost once it is in the ledger", () => {
  expect(viewAnswer(answer)).toEqual({
    model: "mock",
    look: "ok",
    word: "answered",
    text: "Noon.",
    reasoning: "",
    tools: [{ name: "clock", arguments: '{\n  "at": 1\n}' }],
    usage: ["1,234 tokens in, 5 out"],
    times: ["first token after 350 ms", "2.1 s in total"],
    call: "/spend/calls/call%2F1",
    error: null,
  });
  const recorded = {
    spend: 0.0012,
    unpriced: false,
    prompt_tokens: 1200,
    completion_tokens: 5,
    total_tokens: 1205,
  };
  expect(viewAnswer(answer, recorded).usage).toEqual([
    "$ 0.0012",
    "1,200 tokens in, 5 out",
  ]);
  expect(viewAnswer(answer, { ...recorded, unpriced: true }).usage[0]).toBe(
    "$ 0.0012 (no price known)",
  );
});

test.each([
  [{ error: "Budget has been exceeded!", callId: null }, "bad", "rejected"],
  [{ error: "The provider failed." }, "bad", "failed"],
  [{ finish: null }, "warn", "ended early"],
  [{ finish: "length" }, "warn", "cut off at the maximum length"],
  [{ finish: "tool_calls" }, "ok", "answered"],
])("what became of an answer: %j", (fields, look, word) => {
  expect(viewAnswer({ ...answer, ...fields })).toMatchObject({ look, word });
});

const caller = { role: "operator", name: "operator" } as const;

test("the form is shown again as it was typed, without the key", async () => {
  const sent = new FormData();
  for (const [name, value] of [
    ["model", " mock "],
    ["model", ""],
    ["model", "mock"],
    ["model", "other"],
    ["system", "Be brief."],
    ["prompt", "One\r\ntwo"],
    ["tools", "[}"],
    ["key", " sk-secret "],
  ] as const) {
    sent.append(name, value);
  }
  const form = await readPlaygroundForm(sent);
  expect(form).toMatchObject({
    key: "sk-secret",
    models: ["mock", "other"],
    prompt: { system: "Be brief.", text: "One\ntwo" },
  });
  const view = viewPlayground({
    ...form,
    models: ["mock"],
    trouble: null,
    caller,
    maySpend: true,
    answers: [],
    code: [],
  });
  expect(view.fields.map(({ value }) => value)).toEqual([
    "mock",
    "",
    "mock",
    "other",
  ]);
  expect(view.tools.mistake).toContain("line 1, column 2");
  expect(view.title).toBe("Nothing was sent.");
  expect(JSON.stringify(view)).not.toContain("sk-secret");
  expect(view.keyNote).toContain("the end user operator");
});

test("what is missing or wrong is named by its field", async () => {
  const sent = new FormData();
  sent.append("key", "sk-\u00fc");
  sent.append(
    "images",
    new File(["%PDF"], "a.pdf", { type: "application/pdf" }),
  );
  sent.append("images", new File([], ""));
  const { mistakes } = await readPlaygroundForm(sent);
  expect(mistakes).toEqual({
    key: "Key has characters that no key has: paste it again.",
    model: "Model is required.",
    images: "Images must be PNG, JPEG, WebP or GIF files: a.pdf is not.",
  });
  expect((await readPlaygroundForm(new FormData())).mistakes.prompt).toBe(
    "Prompt is required.",
  );
});

test("images and tools are sent as OpenAI's API takes them", async () => {
  const sent = new FormData();
  sent.append("model", "mock");
  sent.append("images", new File(["cat"], "cat.png", { type: "image/png" }));
  sent.append("tools", '[{"type":"function","function":{"name":"clock"}}]');
  const { prompt, mistakes } = await readPlaygroundForm(sent);
  expect(mistakes).toEqual({});
  expect(chatBody("mock", prompt)).toEqual({
    model: "mock",
    messages: [
      {
        role: "user",
        content: [
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,Y2F0" },
          },
        ],
      },
    ],
    tools: [{ type: "function", function: { name: "clock" } }],
  });
});

test("answers at once are limited for each user and in all", () => {
  const slots = new AnswerSlots();
  const release = slots.take("anna", 8);
  expect(() => slots.take("anna", 1)).toThrow("8 of your answers at once");
  slots.take("ben", 8);
  expect(() => slots.take("cleo", 1)).toThrow("16 answers at once");
  release();
  release();
  slots.take("cleo", 8);
  expect(() => slots.take("anna", 1)).toThrow("16 answers at once");
});
