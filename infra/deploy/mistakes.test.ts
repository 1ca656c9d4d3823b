import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test } from "vitest";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { reasonOf } from "./reason.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";

const mistakes = {
  placement: JSON.stringify({ redis: "c" }),
  memory: JSON.stringify({ gateway: 1 }),
  edge: JSON.stringify({ tls: "yes" }),
  drainTimeout: "soon",
  localRunnerA: "http://localhost:11434",
  localRunnerB: "here",
  notesUuid: "short",
  backupDirectory: "here",
  notesData: "there",
  colour: "blue",
};

/** A stack with only a configuration: every verb must reject it. */
function stackWith(values: Readonly<Record<string, string>>): Stack {
  const all = engineSettings(values);
  return { name: "home", getAllConfig: async () => all } as unknown as Stack;
}

test.each([
  [["up"]],
  [["preview"]],
  [["rotate", "redis"]],
  [["adopt"]],
  [["doctor"]],
])("%s reports all ten mistakes of a configuration at once", async (words) => {
  const session = await openSession(
    stackWith({ ...validConfig, ...mistakes }),
    () => undefined,
  );
  const rejected: unknown = await runVerb(session, words, {}).catch(
    (error: unknown) => error,
  );
  const [first, ...lines] = reasonOf(rejected).split("\n");
  expect(first).toBe(
    "10 mistakes in the stack's configuration; nothing was changed:",
  );
  expect(
    lines
      .map(
        (line) =>
          /^ {2}hearth:.*: (?:.* \| )?npx pulumi config (?:set|rm) (?:--\w+ )*hearth:(\S+)/.exec(
            line,
          )?.[1],
      )
      .toSorted(),
  ).toEqual(
    [
      ...Object.keys(mistakes).filter(
        (key) => !["placement", "memory", "edge"].includes(key),
      ),
      "placement.redis",
      "memory.gateway",
      "edge.tls",
    ].toSorted(),
  );
});

test("the line of the engine's report that names the failure is printed", () => {
  expect(
    reasonOf(
      new Error(
        "code: 1\n stderr:\nerror: update failed\n    error: container failed to be in healthy state\n",
      ),
    ),
  ).toBe("container failed to be in healthy state");
  expect(reasonOf(new Error("code: 255\n stdout:"))).toBe(
    "the engine stopped; see the failed operation above.",
  );
});

test("with an unreadable configuration of hosts the addresses are empty, so that cancel works nevertheless", async () => {
  const session = await openSession(
    stackWith({ hosts: "{not json" }),
    () => undefined,
  );
  expect(session.hosts).toBeNull();
  expect(session.engines.a).toMatchObject({ endpoint: "", sshOpts: [] });
});

test("hosts have the same ssh options as in the program", async () => {
  const { engines } = await openSession(
    stackWith(validConfig),
    () => undefined,
  );
  expect(engines.b.endpoint).toBe("ssh://root@192.168.1.11");
  expect(engines.b.sshOpts).toContain("ControlMaster=auto");
});
