import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { GuardrailConfig } from "../config/types.ts";
import { parseRecord, recordOf, recordsOf } from "../../core/json.ts";
import { DONE } from "../providers/chat-stream-end.ts";
import type { StreamPiece } from "../providers/wire.ts";
import { createCallMetrics } from "../metrics/call-metrics.ts";
import { CallGuards } from "./call-guards.ts";
import type { Guard, Subject, Verdict } from "./guard.ts";
import { openGuard } from "./open-guard.ts";
import { StreamCheck } from "./stream-check.ts";

const SUBJECT: Subject = {
  callId: "call",
  sessionId: null,
  caller: { kind: "master", userId: "master", user: null },
  endUser: null,
  inputType: "response",
  tools: null,
  moderate: () => Promise.reject(new Error("not used")),
};

const ports = {
  metrics: createCallMetrics(10, null),
  log: pino({ level: "silent" }),
};

function patterns(
  source: string,
  action: "mask" | "block" = "mask",
  streamWindow = 12,
): Guard {
  return openGuard({
    ...config("patterns", streamWindow),
    check: {
      kind: "patterns",
      patterns: [
        { name: "found", source, isWord: false, action, replacement: "[X]" },
      ],
    },
  });
}

function config(name: string, streamWindow: number): GuardrailConfig {
  return {
    name,
    modes: ["post_call"],
    defaultOn: true,
    failOpen: false,
    streamWindow,
    check: { kind: "secrets", action: "mask" },
    info: null,
  };
}

/** A service that decides about each text that it sees. */
function service(
  decide: (text: string) => Verdict,
  streamWindow = 12,
): Guard & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    config: config("service", streamWindow),
    checking: {
      kind: "remote",
      check([text = ""]) {
        seen.push(text);
        return Promise.resolve(decide(text));
      },
    },
  };
}

function checkBy(...guards: readonly Guard[]): StreamCheck {
  return new StreamCheck(new CallGuards(guards, ports), guards, SUBJECT);
}

const chat = (content: string, index = 0, field = "content"): StreamPiece =>
  json({ id: "c", choices: [{ index, delta: { [field]: content } }] });
const json = (event: object, name: string | null = null): StreamPiece => ({
  kind: "pass",
  event: name,
  data: JSON.stringify(event),
});

/** Everything that is sent, and what of it had been sent before the end. */
async function sentBy(
  check: StreamCheck,
  pieces: readonly StreamPiece[],
): Promise<readonly StreamPiece[]> {
  const sent: StreamPiece[] = [];
  for (const piece of pieces) {
    sent.push(...(await check.push([piece])));
  }
  sent.push(...(await check.push([], true)));
  return sent;
}

function textOf(
  pieces: readonly StreamPiece[],
  index = 0,
  field = "content",
): string {
  return pieces
    .flatMap(({ data }) => recordsOf(parseRecord(data)?.["choices"]))
    .filter((choice) => choice["index"] === index)
    .map((choice) => String(recordOf(choice["delta"])[field] ?? ""))
    .join("");
}

/** Cuts a text at the given places. */
function cut(text: string, places: readonly number[]): readonly string[] {
  const at = [...new Set(places.map((place) => place % (text.length + 1)))];
  const sorted = [0, ...at.toSorted((a, b) => a - b), text.length];
  return sorted.slice(1).map((end, place) => text.slice(sorted[place], end));
}

const words = fc.array(
  fc.constantFrom("id-12345", "id-12", "x", "id-", "12345", " ", "é😀", "-"),
  { maxLength: 40 },
);

test("however a provider cuts its chunks, the same is masked and nothing else changes", async () => {
  await fc.assert(
    fc.asyncProperty(
      words,
      fc.array(fc.nat(400), { maxLength: 30 }),
      async (parts, places) => {
        const text = parts.join("");
        const pieces = cut(text, places).map((part) => chat(part));
        const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
          ...pieces,
          DONE,
        ]);
        expect(textOf(sent)).toBe(text.replace(/id-\d{5}/g, "[X]"));
        expect(sent.at(-1)).toBe(DONE);
      },
    ),
  );
});

test("several choices and the reasoning before an answer are separate texts", async () => {
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
    chat("first id-", 0, "reasoning_content"),
    chat("12345 thought", 0, "reasoning_content"),
    chat("a id-12"),
    chat("b id-12", 1),
    chat("345 a"),
    chat("999 b", 1),
    DONE,
  ]);
  expect(textOf(sent, 0, "reasoning_content")).toBe("first [X] thought");
  expect(textOf(sent, 0)).toBe("a [X] a");
  expect(textOf(sent, 1)).toBe("b [X] b");
});

test("text is sent before the end, and what is still to be checked is not", async () => {
  const check = checkBy(patterns("secret"));
  const sent: StreamPiece[] = [];
  for (const word of "one two three four five six seven sec".split(" ")) {
    sent.push(...(await check.push([chat(`${word} `)])));
  }
  const before = textOf(sent);
  expect(before.length).toBeGreaterThan(5);
  expect(before).not.toContain("sec");
  sent.push(...(await check.push([], true)));
  expect(textOf(sent)).toBe("one two three four five six seven sec ");
});

test("what was sent decides about the start of a word in the next window", async () => {
  const pieces = [..."xxxxxxxxxxxxxxxxxxxxxxxxxxxxxcat cat"].map((letter) =>
    chat(letter),
  );
  const sent = await sentBy(checkBy(patterns(String.raw`\bcat`)), pieces);
  expect(textOf(sent)).toBe("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxcat [X]");
});

test("a finding that never ends is masked in the end and kept within bounds", async () => {
  const check = checkBy(patterns("a+"));
  const pieces = Array.from({ length: 2_000 }, () => chat("a"));
  const sent = await sentBy(check, pieces);
  expect(textOf(sent)).toMatch(/^(\[X\])+$/);
});

test("events without text are kept within bounds behind a text that never continues", async () => {
  const check = checkBy(patterns("secret"));
  await check.push([chat("sec")]);
  const sent: StreamPiece[] = [];
  for (let count = 0; count < 2_000; count++) {
    sent.push(...(await check.push([chat("")])));
  }
  expect(textOf(sent)).toBe("sec");
  expect(sent.length).toBeGreaterThan(1_000);
});

test("a blocked text ends the stream before any of it was sent", async () => {
  const check = checkBy(patterns("forbidden", "block"));
  const sent: StreamPiece[] = [];
  const stream = async () => {
    for (const letter of "all is well until forbidden words come") {
      sent.push(...(await check.push([chat(letter)])));
    }
  };
  await expect(stream()).rejects.toMatchObject({
    kind: "guardrail_blocked",
    message:
      "Content blocked by guardrail patterns: found found, in the answer.",
  });
  expect("all is well until ".startsWith(textOf(sent))).toBe(true);
});

test("a service sees each window with what follows it, and may replace it", async () => {
  const upper = service((text) => ({
    kind: "changed",
    texts: [text.replaceAll("bad", "good")],
  }));
  const parts = "this is ba d and bad and then some more of it".split(" ");
  const sent = await sentBy(
    checkBy(upper),
    parts.map((part) => chat(`${part} `)),
  );
  expect(textOf(sent)).toBe("this is ba d and good and then some more of it ");
  expect(upper.seen.length).toBeGreaterThan(1);
});

test("an event without text passes at once, and in order", async () => {
  const check = checkBy(patterns("secret"));
  const start = json({ type: "message_start", message: {} }, "message_start");
  const ping = json({ type: "ping" }, "ping");
  expect(await check.push([start])).toEqual([start]);
  expect(await check.push([chat("some"), ping])).toEqual([]);
  expect((await check.push([], true)).at(-1)).toEqual(ping);
});

test("Anthropic's blocks are masked, arguments of tools too", async () => {
  const delta = (index: number, fields: object) =>
    json(
      { type: "content_block_delta", index, delta: fields },
      "content_block_delta",
    );
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
    json({
      type: "content_block_start",
      index: 0,
      content_block: { type: "text", text: "" },
    }),
    delta(0, { type: "text_delta", text: "it is id-1" }),
    delta(0, { type: "text_delta", text: "2345." }),
    json({ type: "content_block_stop", index: 0 }),
    delta(1, { type: "input_json_delta", partial_json: '{"a":"id-12' }),
    delta(1, { type: "input_json_delta", partial_json: '345"}' }),
    json({ type: "message_stop" }),
  ]);
  const all = sent
    .map(({ data }) => recordOf(parseRecord(data)?.["delta"]))
    .map((part) => String(part["text"] ?? part["partial_json"] ?? ""))
    .join("|");
  expect(all.replaceAll("|", "")).toBe('it is [X].{"a":"[X]"}');
});

test("the whole texts at the end of Responses are masked like their parts", async () => {
  const delta = (text: string) =>
    json({
      type: "response.output_text.delta",
      item_id: "i",
      output_index: 0,
      content_index: 0,
      delta: text,
      logprobs: [{ token: text }],
    });
  const content = [{ type: "output_text", text: "it is id-12345." }];
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
    json({
      type: "response.created",
      response: { instructions: "id-54321", output: [] },
    }),
    delta("it is id-"),
    delta("12345."),
    json({
      type: "response.output_text.done",
      item_id: "i",
      text: "it is id-12345.",
    }),
    json({
      type: "response.output_item.done",
      item: { type: "message", content },
    }),
    {
      ...json({
        type: "response.completed",
        response: { output: [{ content }] },
      }),
      kind: "done",
    },
  ]);
  const text = sent.map(({ data }) => data).join("\n");
  expect(text).not.toContain("12345");
  expect(text.match(/\[X\]/g)).toHaveLength(4);
});

const SECRET = "it is id-12345.";

test.each([
  ["custom_tool_call_input", { input: SECRET }],
  ["code_interpreter_call_code", { code: SECRET }],
  ["mcp_call_arguments", { arguments: SECRET }],
  ["function_call_arguments", { arguments: SECRET }],
  ["shell_call_command", { command: SECRET }],
  ["reasoning_text", { text: SECRET }],
  ["reasoning_summary_text", { text: SECRET }],
  ["refusal", { refusal: SECRET }],
])("Responses: %s is masked in parts and as a whole", async (name, whole) => {
  const type = `response.${name}`;
  const delta = (text: string) =>
    json({ type: `${type}.delta`, output_index: 0, delta: text });
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
    delta("it is id-"),
    delta("12345."),
    json({ type: `${type}.done`, output_index: 0, ...whole }),
  ]);
  const text = sent.map(({ data }) => data).join("\n");
  expect(text).not.toContain("12345");
  expect(text.match(/\[X\]/g)).toHaveLength(2);
});

test("Responses: what a shell printed is masked in parts and as a whole", async () => {
  const type = "response.shell_call_output_content";
  const delta = (stdout: string) =>
    json({ type: `${type}.delta`, command_index: 0, delta: { stdout } });
  const output = [
    { stdout: SECRET, stderr: "", outcome: { type: "exit", exit_code: 0 } },
  ];
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), [
    delta("it is id-"),
    delta("12345."),
    json({ type: `${type}.done`, command_index: 0, output }),
  ]);
  const text = sent.map(({ data }) => data).join("\n");
  expect(text).not.toContain("12345");
  expect(text.match(/\[X\]/g)).toHaveLength(2);
});

test("Responses: a source is masked, and does not end the text that it is named in", async () => {
  const check = checkBy(patterns(String.raw`id-\d{5}`));
  const delta = (text: string) =>
    json({ type: "response.output_text.delta", output_index: 0, delta: text });
  const source = json({
    type: "response.output_text.annotation.added",
    output_index: 0,
    annotation: { type: "url_citation", title: "id-12345", url: "https://x" },
  });
  const sent = [
    ...(await check.push([delta("a longer text about id-12"), source])),
    ...(await check.push([delta("345.")], true)),
  ];
  const text = sent.map(({ data }) => data).join("\n");
  expect(text).toContain("a longer text about ");
  expect(text).not.toContain("id-12");
  expect(text.match(/\[X\]/g)).toHaveLength(2);
});

test("Responses: parts of a summary and commands of a shell are separate texts", async () => {
  const delta = (type: string, place: object, text: string) =>
    json({ type, output_index: 0, ...place, delta: text });
  const summary = "response.reasoning_summary_text.delta";
  const command = "response.shell_call_command.delta";
  const pieces = [
    delta(summary, { summary_index: 0 }, "first"),
    delta(summary, { summary_index: 1 }, "id-12345"),
    delta(command, { command_index: 0 }, "second"),
    delta(command, { command_index: 1 }, "id-12345"),
  ];
  const sent = await sentBy(checkBy(patterns(String.raw`id-\d{5}`)), pieces);
  expect(sent.map(({ data }) => parseRecord(data)?.["delta"])).toEqual([
    "first",
    "[X]",
    "second",
    "[X]",
  ]);
});
