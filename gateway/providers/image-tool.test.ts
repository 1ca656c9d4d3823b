import { expect, test } from "vitest";
import { askedImageCost } from "./image-tool.ts";

const tool = { type: "image_generation", model: "gpt-image-2" };

test.each([
  ["no tools", {}, 0],
  ["tools of other kinds", { tools: [{ type: "web_search" }] }, 0],
  ["the tool", { tools: [tool] }, 6_240 * 30],
  ["a quality", { tools: [{ ...tool, quality: "low" }] }, 408 * 30],
  ["no model", { tools: [{ type: "image_generation" }] }, 6_240 * 40],
  ["no calls of tools", { tools: [tool], max_tool_calls: 0 }, 0],
  ["an unknown model", { tools: [{ ...tool, model: "unknown" }] }, 0],
])("a call with %s reserves an image", (_, body, cost) => {
  expect(askedImageCost(body)).toBeCloseTo(cost / 1e6, 12);
});
