import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack, UpOptions } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readConfig } from "../config/config.ts";
import { secretFields, type HearthConfig } from "../config/config-schema.ts";
import type { Rotation } from "../config/rotation.ts";
import { FakePulumi } from "../../test/infra/fake-pulumi.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { endGrace, findStartedRotation, rotate } from "./rotate.ts";
import { openSession, readSettings, type Session } from "./session.ts";
import { checkSettings } from "./stack-doctor.ts";
import { runVerb } from "./verbs.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-rotate-"));
  // Fake hosts that respond and have no containers.
  writeFileSync(join(directory, "ssh"), "#!/bin/sh\n");
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

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

/** A session on a stack that is deployed on both hosts, whose settings change as in the engine. */
async function openHome(
  settings: Readonly<Record<string, string>>,
  up: (options: UpOptions) => Promise<void> = async () => undefined,
): Promise<{ readonly session: Session; readonly pulumi: FakePulumi }> {
  const pulumi = new FakePulumi(directory);
  const removed = new Set<string>();
  const stack = {
    name: "home",
    workspace: { pulumiCommand: pulumi, workDir: directory, envVars: {} },
    getAllConfig: async () =>
      engineSettings(
        Object.fromEntries(
          Object.entries({
            ...validConfig,
            ...settings,
            ...Object.fromEntries(pulumi.written()),
          }).filter(([key]) => !removed.has(key)),
        ),
      ),
    removeConfig: async (key: string) =>
      void removed.add(key.replace("hearth:", "")),
    exportStack: async () => ({
      deployment: {
        resources: [{ urn: "network-a", type: "docker:index/network:Network" }],
      },
    }),
    up: async (options: UpOptions) => {
      await up(options);
      return { summary: { resourceChanges: {} } };
    },
  } as unknown as Stack;
  return { session: await openSession(stack, () => undefined), pulumi };
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
      getAllConfig: async () => engineSettings(all),
      exportStack: async () => ({
        deployment: {
          resources: [{ urn: "x", type: "postgresql:index/role:Role" }],
        },
      }),
    } as unknown as Stack;
    const session = await openSession(stack, () => undefined);
    await expect(runVerb(session, words, flags)).rejects.toThrow(
      "a rotation of provider is unfinished: run `npm run deploy -- rotate provider OPENAI_API_KEY` to complete it and bring the stack up.",
    );
  },
);

test.each([
  ["notes", { grace: "2h" }],
  ["redis", { end: true }],
  ["master", { end: true, grace: "2h" }],
])("rotate %s rejects options without effect: %o", async (kind, flags) => {
  const { session } = await openHome({});
  await expect(runVerb(session, ["rotate", kind], flags)).rejects.toThrow(
    /is for master|use one of them/,
  );
});

test("a Redis without TLS keeps its password until an up, which the error names", async () => {
  const { session } = await openHome({});
  // The fake host's Redis has no certificates.
  await expect(rotate(session, "redis", { graceSeconds: 0 })).rejects.toThrow(
    /^Redis was deployed by a version of Hearth without TLS, .*; nothing was changed: run `npm run deploy -- up`/,
  );
});

test("the end of the grace period is deployed by the next run if the first one fails after the settings are removed", async () => {
  const up = vi
    .fn<() => Promise<void>>()
    .mockRejectedValueOnce(new Error("host B is down"));
  const { session } = await openHome(
    {
      masterKeyPrevious: "sk-master-the-one-before-0123",
      masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
    },
    up,
  );
  const end = () => runVerb(session, ["rotate", "master"], { end: true });
  await expect(end()).rejects.toThrow("host B is down");
  expect(await end()).toBe(0);
  expect(up).toHaveBeenCalledTimes(2);
});

test("a rotation is continued with --refresh, which creates what a host that was replaced meanwhile lacks", async () => {
  const up = vi.fn<(options: UpOptions) => Promise<void>>();
  const { session } = await openHome({ rotation: JSON.stringify(openai) }, up);
  await runVerb(session, ["rotate", "provider"], { refresh: true });
  expect(up.mock.calls).toEqual([
    [expect.objectContaining({ refresh: true, runProgram: true })],
  ]);
});

test("a rotation of the master key that is continued after its grace period gives the old key another one, whose end is set first", async () => {
  const rotation: Rotation = {
    of: "master",
    settings: {
      masterKey: "sk-master-the-new-one-012345",
      masterKeyPrevious: validConfig["masterKey"] ?? "",
      masterKeyPreviousUntil: "2026-01-31T12:00:00Z",
    },
    old: validConfig["masterKey"] ?? "",
  };
  const { session, pulumi } = await openHome({
    rotation: JSON.stringify(rotation),
  });
  const before = Date.now();
  await runVerb(session, ["rotate", "master"], { grace: "30m" });
  const [stored, ...written] = pulumi.written();
  const until = written[0]?.[1] ?? "";
  expect(written).toEqual([
    ["masterKeyPreviousUntil", until],
    ["masterKey", "sk-master-the-new-one-012345"],
    ["masterKeyPrevious", validConfig["masterKey"]],
  ]);
  expect(Date.parse(until)).toBeGreaterThanOrEqual(before + 30 * 60_000);
  // The next run continues with it, too.
  expect(stored?.[0]).toBe("rotation");
  expect(JSON.parse(stored?.[1] ?? "")).toMatchObject({
    settings: { masterKeyPreviousUntil: until },
  });
});

test("an end of the grace period that failed is reported until the same command has completed it", async () => {
  let fails = true;
  const { session } = await openHome(
    {
      masterKeyPrevious: "sk-master-the-one-before-0123",
      masterKeyPreviousUntil: "2099-01-31T12:00:00Z",
    },
    async () => {
      const { masterKeyPrevious } = await readSettings(session);
      expect(masterKeyPrevious).toBeUndefined();
      if (fails) {
        throw new Error("host B does not respond");
      }
    },
  );
  const fixes = async () =>
    checkSettings(await readSettings(session))
      .filter(({ what }) => what.startsWith("the old master key expired"))
      .map(({ fix }) => fix);
  await expect(endGrace(session)).rejects.toThrow("host B does not respond");
  expect(await fixes()).toEqual(["npm run deploy -- rotate master --end"]);
  fails = false;
  await endGrace(session);
  expect(await fixes()).toEqual([]);
});
