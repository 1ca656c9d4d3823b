import { expect, test } from "vitest";
import { cardOf } from "../pricing/prices-fixture.ts";
import { mostExpensive } from "../pricing/cost.ts";
import { askedSearches } from "./searches.ts";

const web = { type: "web_search_preview" };

test.each([
  ["no tools", {}, 0],
  ["tools of other kinds", { tools: [{ type: "function" }] }, 0],
  ["a tool without a limit", { tools: [web] }, 5],
  ["options of a chat", { web_search_options: {} }, 5],
  [
    "a small context",
    { web_search_options: { search_context_size: "low" } },
    1,
  ],
  [
    "a large context",
    { web_search_options: { search_context_size: "high" } },
    10,
  ],
  ["a tool with a limit", { tools: [{ ...web, max_uses: 2 }] }, 2],
  ["a limit of all tools", { tools: [web], max_tool_calls: 20 }, 20],
  [
    "limits of a tool and of all",
    { tools: [{ ...web, max_uses: 9 }, web], max_tool_calls: 3 },
    3,
  ],
  ["a negative limit", { tools: [{ ...web, max_uses: -1 }] }, 0],
  [
    "limits whose sum is infinite",
    { tools: Array(2).fill({ ...web, max_uses: Number.MAX_VALUE }) },
    2_000_000,
  ],
])("a call with %s makes at most that many searches", (_, body, searches) => {
  expect(askedSearches({ body: { model: "m", ...body } }, "web_search")).toBe(
    searches,
  );
});

test("searches of both kinds are part of the worst case", () => {
  const none = { inputTokens: 0, outputTokens: 0 };
  const card = cardOf({ model: "openai/gpt-4.1" });
  expect(mostExpensive(card, { ...none, webSearches: 3 })).toBeCloseTo(0.03, 9);
  expect(mostExpensive(card, { ...none, fileSearches: 2 })).toBeCloseTo(
    0.005,
    9,
  );
  const body = { model: "m", tools: [{ type: "file_search" }] };
  expect(askedSearches({ body }, "file_search")).toBe(5);
});
