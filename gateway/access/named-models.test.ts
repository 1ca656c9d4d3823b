import { expect, test } from "vitest";
import type { Catalog } from "../routing/catalog.ts";
import { authorizeNamedModels } from "./named-models.ts";
import type { KeyCaller } from "./callers.ts";

const caller = {
  kind: "key",
  models: ["small"],
  team: null,
  organization: null,
  user: null,
} as unknown as KeyCaller;

/** Counts how often all models are looked through. */
function catalogOf(models: Readonly<Record<string, string>>) {
  let asked = 0;
  const groups = Object.entries(models).map(([alias, model]) => ({
    alias,
    accessGroups: [],
    teamId: null,
    deployments: [{ model }],
  }));
  const groupsFor = () => {
    asked += 1;
    return groups;
  };
  const catalog = { groupsFor } as unknown as Catalog;
  return { catalog, asked: () => asked };
}

const advisor = (model: string) => ({ type: "advisor_20260301", model });

test("an advisor must be a model that the caller may use by some name", () => {
  const gateway = catalogOf({ small: "claude-a", large: "claude-b" });
  const ask = (model: string) =>
    authorizeNamedModels(gateway, caller, { tools: [advisor(model)] });
  expect(() => ask("claude-a")).not.toThrow();
  expect(() => ask("claude-b")).toThrow("not allowed to access model claude-b");
});

test("the model of the image tool, if it names one, must be one that the caller may use", () => {
  const gateway = catalogOf({ small: "gpt-a", pictures: "gpt-image-2" });
  const ask = (model?: string) =>
    authorizeNamedModels(gateway, caller, {
      tools: [{ type: "image_generation", model }],
    });
  expect(() => ask()).not.toThrow();
  expect(() => ask("gpt-image-2")).toThrow(
    "not allowed to access model gpt-image-2",
  );
});

test("a model that OpenRouter may fall back to must be one that the caller may use", () => {
  const gateway = catalogOf({ small: "claude-a", large: "claude-b" });
  const ask = (...models: string[]) =>
    authorizeNamedModels(gateway, caller, { models });
  expect(() => ask("claude-a", "small")).not.toThrow();
  expect(() => ask("claude-a", "claude-b")).toThrow(
    "not allowed to access model claude-b",
  );
});

test("the models of a caller are looked up once for all tools of a body", () => {
  const gateway = catalogOf({ small: "claude-a" });
  const tools = Array.from({ length: 1_000 }, () => advisor("claude-a"));
  authorizeNamedModels(gateway, caller, { tools });
  expect(gateway.asked()).toBe(1);
});
