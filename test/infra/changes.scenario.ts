import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import { beforeAll, describe, expect, test } from "vitest";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import { changedSince, containerIds } from "./containers.ts";
import { deploy, nothingDisagrees, quiet, say, timed } from "./day-two.ts";
import { chat, deployedStack, EDGES } from "./running.ts";
import { noAlerts } from "./supervisors.ts";

const running = deployedStack();
let since = 0;
beforeAll(() => {
  since = Date.now();
});

/** Changes of an `up` on a running stack. */
describe("changes", () => {
  test("2: a second preview is empty, and a refresh finds no drift", async () => {
    const { testbed } = running();
    await timed("preview", () =>
      testbed.stack.preview({
        expectNoChanges: true,
        parallel: PARALLEL,
        onOutput: quiet,
      }),
    );
    const { summary } = await timed("refresh", () =>
      testbed.stack.refresh({
        expectNoChanges: true,
        parallel: PARALLEL,
        onOutput: quiet,
      }),
    );
    expect(changes(summary.resourceChanges)).toEqual([]);
    await timed("preview after refresh", () =>
      testbed.stack.preview({
        expectNoChanges: true,
        parallel: PARALLEL,
        onOutput: quiet,
      }),
    );
  });

  test("3: one setting changed by the plain pulumi command replaces exactly one container; data and keys stay", async () => {
    const { testbed, key } = running();
    const before = await containerIds(testbed);
    // For the plain command, resources created through the automation API are unchanged.
    await timed("pulumi preview", () =>
      testbed.pulumi("preview", "--expect-no-changes"),
    );
    const memory = { postgres: 256, redis: 160, gateway: 512 };
    await testbed.pulumi(
      "config",
      "set",
      "hearth:memory",
      JSON.stringify(memory),
    );
    const result = await timed("pulumi up", () =>
      testbed.pulumi("up", "--yes", "--skip-preview", "--parallel", "4"),
    );
    expect(result).toMatch(/1 replaced\n/);
    say(inOneLine(/Resources:\n([^]*?)\n\n/.exec(result)?.[1] ?? result));
    expect(await changedSince(testbed, before)).toEqual(["a hearth-redis"]);
    await chat(EDGES[1], key, "still there?");
  });

  test("ten mistakes are ten sentences, and nothing is changed", async () => {
    const { testbed } = running();
    const before = await containerIds(testbed);
    const right = await testbed.stack.getAllConfig();
    const hosts = JSON.parse(right["hearth:hosts"]?.value ?? "") as {
      readonly a: object;
      readonly b: object;
    };
    const mistakes: Readonly<Record<string, string>> = {
      hosts: JSON.stringify({
        a: { ...hosts.a, docker: "192.168.1.10" },
        b: { ...hosts.b, publish: ["0.0.0.0"] },
      }),
      placement: JSON.stringify({ redis: "c" }),
      memory: JSON.stringify({ gateway: 1 }),
      edge: JSON.stringify({ tls: "yes" }),
      drainTimeout: "soon",
      localRunnerA: "http://localhost:11434",
      notesUuid: "short",
      backupDirectory: "here",
      colour: "blue",
    };
    await testbed.configure(mistakes);
    const rejected = await testbed
      .pulumi("up", "--yes", "--skip-preview")
      .then(() => "")
      .catch((error: { readonly stdout: string }) => error.stdout);
    const wrong = [
      ...rejected.matchAll(
        /^ *hearth:(?: unknown setting ")?([^\s":]+)"?(?=[ :]).*?: (?:.* \| )?npx pulumi config (?:set|rm) /gm,
      ),
    ].map(([, name]) => name);
    expect(wrong.toSorted()).toEqual([
      "backupDirectory",
      "colour",
      "drainTimeout",
      "edge.tls",
      "hosts.a.docker",
      "hosts.b.publish.0",
      "localRunnerA",
      "memory.gateway",
      "notesUuid",
      "placement.redis",
    ]);
    expect(await containerIds(testbed)).toEqual(before);
    await testbed.stack.removeAllConfig(
      Object.keys(await testbed.stack.getAllConfig()),
    );
    await testbed.stack.setAllConfig(right);
  });

  test("settings that only look changeable are rejected, and nothing is changed", async () => {
    const { testbed } = running();
    const before = await containerIds(testbed);
    const right = await testbed.stack.getAllConfig();
    const changed: Readonly<Record<string, RegExp>> = {
      saltKey: /^hearth: hearth:saltKey is another one than deployed, /m,
      notesUuid: /^hearth: hearth:notesUuid is another one than deployed, /m,
      postgresPassword:
        /^hearth: hearth:postgresPassword is not the password of Postgres' superuser; nothing was changed: npm run deploy -- --stack test rotate postgres gives both another one\.$/m,
      notesAdminPassword:
        /^hearth: hearth:notesAdminPassword is not the password of the notes server's admin; nothing was changed: set it back, or /m,
    };
    for (const [name, message] of Object.entries(changed)) {
      await testbed.configure({ [name]: "f".repeat(32) });
      const { code, output } = await deploy(testbed, ["up"]);
      expect(output).toMatch(message);
      expect(code).toBe(1);
      if (name.endsWith("Password")) {
        const found = await deploy(testbed, ["doctor"]);
        expect(found.output).toMatch(new RegExp(`^hearth:${name} is not`, "m"));
      }
      await testbed.stack.setAllConfig(right);
    }
    expect(await containerIds(testbed)).toEqual(before);
    await nothingDisagrees(testbed);
  });

  test("no deployment raised an alert", () =>
    noAlerts(running().testbed, since));
});

function changes(map: OpMap | undefined): readonly string[] {
  return Object.keys(map ?? {}).filter((operation) => operation !== "same");
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
