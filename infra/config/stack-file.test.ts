import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { execute } from "../../core/execute.ts";
import { inProject } from "../project-files.ts";
import { rejectUnknownStack, settingsList } from "./stack-file.ts";

test("a new stack's file lists all settings, and none of the example's hosts", () => {
  const list = settingsList();
  expect(parse(list)).toBeNull();
  expect(list).toContain("# hearth:postgresVersion: 18\n");
  expect(list).not.toMatch(/ssh:|publish:/);
});

test("a stack without a file is neither created nor selected: the message names those that have one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-stacks-"));
  const main = inProject("infra/deploy/main.ts");
  try {
    expect(() => rejectUnknownStack("home", directory)).toThrow(
      "there is no Pulumi.home.yaml, the settings of the stack home; nothing was changed: run `npm run init` to create this one.",
    );
    writeFileSync(join(directory, "Pulumi.home.yaml"), "");
    writeFileSync(join(directory, "Pulumi.grown.yaml"), "");
    rejectUnknownStack("acme/hearth/grown", directory);
    const preview = ["preview", "--stack", "gronw", "--cwd", directory];
    expect(await execute(process.execPath, [main, ...preview])).toMatchObject({
      exitCode: 1,
      stderr:
        "hearth: there is no Pulumi.gronw.yaml, the settings of the stack gronw; nothing was changed: name another stack with --stack (grown, home), or run `npm run init -- --stack gronw` to create this one.\n",
    });
    expect(readdirSync(directory).toSorted()).toEqual([
      "Pulumi.grown.yaml",
      "Pulumi.home.yaml",
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
