import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test } from "vitest";
import { readConfig, type HearthConfig } from "../../infra/config.ts";
import { secretFields } from "../../infra/config-schema.ts";
import { rightConfig } from "../../test/infra/stack-config.ts";
import { begunAs } from "./rotate.ts";
import type { Rotation } from "./rotations.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";

function withRotation(rotation: Rotation): HearthConfig {
  const read = readConfig({
    values: { ...rightConfig, rotation: JSON.stringify(rotation) },
    isSecret: (key) => secretFields.includes(key),
  });
  if (!read.ok) throw new Error(read.errors.join("\n"));
  return read.config;
}

const openai: Rotation = {
  of: "provider",
  settings: { "providerKeys.OPENAI_API_KEY": "sk-new" },
  old: "",
};

test("the same rotation goes on, a provider's also without its name", () => {
  const config = withRotation(openai);
  expect(begunAs(config, "provider", "OPENAI_API_KEY")).toEqual(openai);
  expect(begunAs(config, "provider", undefined)).toEqual(openai);
});

test.each([
  ["provider", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"],
  ["redis", undefined, "redis"],
] as const)(
  "another one is refused until it is over: %s %s",
  (kind, provider, then) => {
    expect(() => begunAs(withRotation(openai), kind, provider)).toThrow(
      `a rotation of OPENAI_API_KEY is not over: \`npm run deploy -- rotate provider OPENAI_API_KEY\` goes on with it; then rotate ${then}.`,
    );
  },
);

test.each([
  [["rotate", "master"], { end: true }],
  [["adopt"], {}],
])(
  "%s is refused in the midst of a rotation, and nothing is touched",
  async (words, flags) => {
    const all = { ...rightConfig, rotation: JSON.stringify(openai) };
    const stack = {
      getAllConfig: async () =>
        Object.fromEntries(
          Object.entries(all).map(([key, value]) => [
            `hearth:${key}`,
            { value, secret: secretFields.includes(key) },
          ]),
        ),
      exportStack: async () => ({
        deployment: {
          resources: [{ urn: "x", type: "postgresql:index/role:Role" }],
        },
      }),
    } as unknown as Stack;
    const session = await openSession(stack, () => undefined);
    await expect(runVerb(session, words, flags)).rejects.toThrow(
      "a rotation of provider is not over: `npm run deploy -- rotate provider OPENAI_API_KEY` goes on with it, and brings the hosts up.",
    );
  },
);
