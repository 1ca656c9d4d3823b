import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import type { Checking, Finding } from "./guard.ts";
import { mask } from "./mask.ts";
import { patternsChecking } from "./patterns.ts";
import { secretsChecking } from "./secrets.ts";
import {
  hasTokenNumbers,
  textsOfAnswer,
  textsOfBody,
  withAnswerTexts,
  withTexts,
} from "./texts.ts";

async function found(
  checking: Checking,
  text: string,
  from = 0,
): Promise<readonly Finding[]> {
  return checking.kind === "local" ? checking.find(text, from) : [];
}

const GITHUB = `ghp_${"16C7e42F292c6912E7710c838347Ae178B4a"}`;

test("an expression that takes others hours is matched in linear time", async () => {
  const checking = patternsChecking([
    {
      name: "a",
      source: "^(a+)+$",
      isWord: false,
      action: "block",
      replacement: "",
    },
  ]);
  expect(await found(checking, `${"a".repeat(200_000)}!`)).toEqual([]);
});

test("positions count characters as JavaScript does", async () => {
  const checking = patternsChecking([
    {
      name: "id",
      source: String.raw`\bid\d+`,
      isWord: false,
      action: "mask",
      replacement: "*",
    },
  ]);
  const text = "😀é id1 😀 id22";
  expect(mask(text, await found(checking, text))).toBe("😀é * 😀 *");
  expect(await found(checking, "xid1 id2", 1)).toMatchObject([{ start: 5 }]);
});

test("words are found in any case, as they are written", async () => {
  const checking = patternsChecking([
    {
      name: "w",
      source: "Straße a.b",
      isWord: true,
      action: "mask",
      replacement: "*",
    },
  ]);
  const text = "😀 STRAßE A.B, straße a.b, strasse a.b, straße axb";
  expect(mask(text, await found(checking, text))).toBe(
    "😀 *, *, strasse a.b, straße axb",
  );
  expect(await found(checking, "straße a.b straße a.b", 1)).toMatchObject([
    { start: 11, end: 21 },
  ]);
});

test("keys of providers, tokens and private keys are secrets; a comment does not hide them", async () => {
  const checking = secretsChecking("mask");
  const pem = generateKeyPairSync("rsa", { modulusLength: 2048 })
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();
  const text = `// secretlint-disable\n😀 ${GITHUB} and AKIA${"QYLPMN5HIZ3EXAM2"}\n${pem}`;
  expect(mask(text, await found(checking, text))).toBe(
    "// secretlint-disable\n😀 [REDACTED] and [REDACTED]\n[REDACTED]\n",
  );
  expect(await found(checking, "nothing to hide, not even sk-short")).toEqual(
    [],
  );
});

test("a check of secrets leaves no record behind", async () => {
  const before = performance.getEntries().length;
  await found(secretsChecking("mask"), GITHUB);
  expect(performance.getEntries()).toHaveLength(before);
});

test("everything that a model reads is a text of a body; names, ids and images are not", () => {
  const image = `data:image/png;base64,${"A".repeat(300)}`;
  const body = {
    model: "m",
    user: "anna@example.com",
    messages: [
      { role: "system", content: "s" },
      {
        role: "user",
        content: [
          { type: "text", text: "data:t" },
          { type: "image_url", image_url: { url: image } },
          { type: "tool_use", id: "1", input: { id: "in", type: "ty" } },
        ],
      },
      { role: "tool", tool_call_id: "2", content: "result" },
    ],
    tools: [{ type: "function", function: { description: "d" } }],
    text: { format: { type: "json_schema", schema: { description: "f" } } },
  };
  const texts = textsOfBody(body);
  expect(texts).toEqual({
    content: ["s", "data:t", "in", "ty", "result"],
    other: ["d", "f"],
  });
  expect(
    textsOfBody(
      withTexts(body, {
        content: texts.content.map((text) => `${text}!`),
        other: texts.other.map((text) => `${text}?`),
      }),
    ),
  ).toEqual({
    content: ["s!", "data:t!", "in!", "ty!", "result!"],
    other: ["d?", "f?"],
  });
  expect(hasTokenNumbers({ input: ["text"] })).toBe(false);
  expect(hasTokenNumbers({ input: ["text", [1, 2]] })).toBe(true);
});

test("a changed answer keeps the rest, but not the tokens of the former text", () => {
  const answer = Buffer.from(
    JSON.stringify({
      id: "a",
      choices: [
        {
          message: { role: "assistant", content: "secret" },
          logprobs: { content: [{ token: "secret" }] },
        },
      ],
      usage: { total_tokens: 3 },
    }),
  );
  expect(textsOfAnswer(answer)).toEqual(["secret"]);
  expect(JSON.parse(withAnswerTexts(answer, ["***"]).toString())).toEqual({
    id: "a",
    choices: [
      { message: { role: "assistant", content: "***" }, logprobs: null },
    ],
    usage: { total_tokens: 3 },
  });
});
