import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigMap } from "@pulumi/pulumi/automation/config.js";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test, vi } from "vitest";
import { readConfig, type HearthConfig } from "../config/config.ts";
import { secretFields } from "../config/config-schema.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { findStartedRotation, rotate } from "./rotate.ts";
import type { Rotation } from "./rotations.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";

function withRotation(rotation: Rotation): HearthConfig {
  const read = readConfig({
    values: { ...validConfig, rotation: JSON.stringify(rotation) },
    isSecret: (key) => secretFields.includes(key),
  });
  if (!read.ok) {
    throw new Error(read.errors.join("\n"));
  }
  return read.config;
}

/** The engine's form of settings. */
function settingsOf(all: Readonly<Record<string, string>>): ConfigMap {
  return Object.fromEntries(
    Object.entries(all).map(([key, value]) => [
      `hearth:${key}`,
      { value, secret: secretFields.includes(key) },
    ]),
  );
}

const openai: Rotation = {
  of: "provider",
  settings: { "providerKeys.OPENAI_API_KEY": "sk-new" },
  old: "",
};

test("the same rotation is continued, a provider's also without its name", () => {
  const config = withRotation(openai);
  expect(findStartedRotation(config, "provider", "OPENAI_API_KEY")).toEqual(
    openai,
  );
  expect(findStartedRotation(config, "provider", undefined)).toEqual(openai);
});

test.each([
  ["provider", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"],
  ["redis", undefined, "redis"],
] as const)(
  "another rotation is rejected until it is complete: %s %s",
  (kind, provider, then) => {
    expect(() =>
      findStartedRotation(withRotation(openai), kind, provider),
    ).toThrow(
      `a rotation of OPENAI_API_KEY is unfinished: run \`npm run deploy -- rotate provider OPENAI_API_KEY\` to complete it, then rotate ${then}.`,
    );
  },
);

test.each([
  [["rotate", "master"], { end: true }],
  [["adopt"], {}],
])(
  "%s is rejected during a rotation, and nothing is changed",
  async (words, flags) => {
    const all = { ...validConfig, rotation: JSON.stringify(openai) };
    const stack = {
      name: "home",
      getAllConfig: async () => settingsOf(all),
      exportStack: async () => ({
        deployment: {
          resources: [{ urn: "x", type: "postgresql:index/role:Role" }],
        },
      }),
    } as unknown as Stack;
    const session = await openSession(stack, () => undefined);
    await expect(runVerb(session, words, flags)).rejects.toThrow(
      "a rotation of provider is unfinished: run `npm run deploy -- rotate provider OPENAI_API_KEY` to complete it and bring the hosts up.",
    );
  },
);

test("a Redis without TLS keeps its password until an up, which the error names", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-rotate-"));
  // A fake host of a Redis without certificates.
  writeFileSync(join(directory, "ssh"), "#!/bin/sh\n");
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  try {
    const stack = {
      name: "home",
      getAllConfig: async () => settingsOf(validConfig),
    } as unknown as Stack;
    const session = await openSession(stack, () => undefined);
    await expect(rotate(session, "redis", { graceSeconds: 0 })).rejects.toThrow(
      /^Redis was deployed by a version of Hearth without TLS, .*; nothing was changed: run `npm run deploy -- up`/,
    );
  } finally {
    vi.unstubAllEnvs();
    rmSync(directory, { recursive: true });
  }
});
