import { expect, test } from "vitest";
import { z } from "zod";
import type { KeyCaller } from "../access/callers.ts";
import type { Catalog, ModelGroup } from "../routing/catalog.ts";
import type { CallBody } from "./body.ts";
import { authorizeFallbacks } from "./fallbacks.ts";

const caller = {
  kind: "key",
  models: [],
  aliases: new Map(),
  modelLimits: new Map([["limited", {}]]),
  team: null,
  organization: null,
  user: null,
} as unknown as KeyCaller;

const groupOf = (alias: string) =>
  ({
    alias,
    accessGroups: [],
    teamId: null,
    deployments: [],
    pending: null,
    blocked: false,
  }) as unknown as ModelGroup;

const gateway = { catalog: { find: groupOf } as unknown as Catalog };

test("a model for which the key has limits of its own is not a fallback of another", () => {
  const kind = {
    callType: "acompletion",
    schema: z.looseObject({ model: z.string() }) as z.ZodType<CallBody>,
  };
  const fallbacksOf = (model: string, alias: string) =>
    authorizeFallbacks(
      gateway,
      caller,
      { group: groupOf(model), kind, body: { model } },
      [{ alias, fields: null }],
      () => expect.unreachable(),
    ).names;
  expect(fallbacksOf("limited", "free")).toEqual(["free"]);
  expect(fallbacksOf("limited", "limited")).toEqual(["limited"]);
  expect(() => fallbacksOf("free", "limited")).toThrow(
    "Fallback limited: this key has a budget or limits of its own",
  );
});
