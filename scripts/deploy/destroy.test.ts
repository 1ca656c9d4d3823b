import { confirm, text } from "@clack/prompts";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { secretFields } from "../../infra/config-schema.ts";
import { rightConfig } from "../../test/infra/stack-config.ts";
import { openSession } from "./session.ts";
import { runVerb, type Flags } from "./verbs.ts";

const cancelled = Symbol("Ctrl-C");
vi.mock("@clack/prompts", () => ({
  confirm: vi.fn(),
  text: vi.fn(),
  password: vi.fn(),
  isCancel: (answer: unknown) => typeof answer === "symbol",
}));

const terminal = process.stdin.isTTY;
beforeEach(() => void (process.stdin.isTTY = true));
afterEach(() => void (process.stdin.isTTY = terminal));

/** Destroys a stack that tells what was asked of it; each must end before the engine is told to. */
async function destroy(
  flags: Flags,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly asked: readonly string[]; readonly ended: unknown }> {
  const asked: string[] = [];
  const all = { ...rightConfig, ...settings };
  const stack = {
    name: "home",
    getAllConfig: async () =>
      Object.fromEntries(
        Object.entries(all).map(([key, value]) => [
          `hearth:${key}`,
          { value, secret: secretFields.includes(key) },
        ]),
      ),
    previewDestroy: async () => void asked.push("preview"),
    exportStack: async () => {
      asked.push("destroy");
      return { deployment: {} };
    },
  } as unknown as Stack;
  const session = await openSession(stack, () => undefined);
  const ended: unknown = await runVerb(session, ["destroy"], flags).catch(
    (error: unknown) => (error as Error).message,
  );
  return { asked, ended };
}

test("purge wants the stack's name after it said what would go, and another word touches nothing", async () => {
  vi.mocked(text).mockResolvedValue("yes");
  expect(await destroy({ purge: true })).toEqual({
    asked: ["preview"],
    ended: '"yes" is not the stack\'s name; nothing was touched.',
  });
  expect(vi.mocked(text).mock.calls[0]?.[0].message).toBe(
    "All data will be gone: rows, keys, notes, backups on the hosts. Type the stack's name (home) to go on",
  );
});

test("--yes does not answer for purge", async () => {
  vi.mocked(text).mockResolvedValue("");
  const { asked } = await destroy({ purge: true, yes: true });
  expect(asked).toEqual(["preview"]);
});

test("Ctrl-C and No touch nothing", async () => {
  vi.mocked(text).mockResolvedValue(cancelled as never);
  expect(await destroy({ purge: true })).toEqual({
    asked: ["preview"],
    ended: "stopped; nothing was changed.",
  });
  vi.mocked(confirm).mockResolvedValue(false);
  expect(await destroy({})).toEqual({
    asked: ["preview"],
    ended: "stopped; nothing was touched.",
  });
});

test("where nobody can answer nothing is touched", async () => {
  process.stdin.isTTY = false;
  expect((await destroy({ purge: true })).asked).toEqual([]);
  expect(await destroy({})).toMatchObject({
    asked: ["preview"],
    ended: "destroy asks first: add --yes where nobody can answer.",
  });
});

test("in the midst of a rotation the command that ends it is named", async () => {
  const rotation = JSON.stringify({ of: "redis", settings: {}, old: "" });
  expect(await destroy({ yes: true }, { rotation })).toEqual({
    asked: [],
    ended:
      "a rotation of redis is not over: `npm run deploy -- rotate redis` goes on with it, and brings the hosts up.",
  });
});
