import { expect, test } from "vitest";
import { anthropicWire } from "./anthropic.ts";
import { withCacheMarks } from "./anthropic-cache.ts";
import { testDeployment } from "./stream-fixture.ts";

const MARK = { cache_control: { type: "ephemeral" } };
const text = (words: string) => ({ type: "text", text: words });

test("instructions and the ends of this and the previous call are marked", () => {
  const body = {
    model: "m",
    tools: [{ name: "look" }],
    system: "Be brief.",
    messages: [
      { role: "user", content: "one" },
      { role: "assistant", content: "1" },
      { role: "user", content: [text("two"), text("more")] },
      { role: "assistant", content: [text("2")] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t" }] },
    ],
  };
  expect(withCacheMarks(body)).toEqual({
    ...body,
    system: [{ ...text("Be brief."), ...MARK }],
    messages: [
      ...body.messages.slice(0, 2),
      { role: "user", content: [text("two"), { ...text("more"), ...MARK }] },
      body.messages[3],
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t", ...MARK }],
      },
    ],
  });
});

test("without instructions the tools are marked, and an empty text is not", () => {
  const body = {
    tools: [{ name: "look" }, { name: "edit" }],
    messages: [{ role: "user", content: "" }],
  };
  expect(withCacheMarks(body)).toEqual({
    tools: [{ name: "look" }, { name: "edit", ...MARK }],
    messages: [{ role: "user", content: "" }],
  });
});

test.each([
  { system: [{ ...text("Be brief."), ...MARK }] },
  { tools: [{ name: "look", ...MARK }] },
  { messages: [{ role: "user", content: [{ ...text("one"), ...MARK }] }] },
  { ...MARK, messages: [{ role: "user", content: "one" }] },
])("marks of the caller stay as they are: %j", (own) => {
  expect(withCacheMarks(own)).toEqual(own);
});

test.each(["chat", "messages"] as const)(
  "a deployment with cache: auto marks calls of the endpoint %s",
  (endpoint) => {
    const body = { model: "m", messages: [{ role: "user", content: "hi" }] };
    const send = (cacheMarks: boolean) =>
      anthropicWire.request(
        endpoint,
        body,
        testDeployment({ provider: "anthropic", cacheMarks }),
        false,
      )["messages"];
    expect(send(true)).toEqual([
      { role: "user", content: [{ ...text("hi"), ...MARK }] },
    ]);
    expect(JSON.stringify(send(false))).not.toContain("cache_control");
  },
);
