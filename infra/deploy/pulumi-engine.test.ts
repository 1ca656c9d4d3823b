import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { engineDirectory, findEngine } from "./pulumi-engine.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-engine-"));
  vi.stubEnv("PULUMI_HOME", join(directory, "home"));
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

function installCommand(script: string): void {
  writeFileSync(join(directory, "pulumi"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, "pulumi"), 0o755);
}

test("the engine downloaded by npm's command is found without running the command again", async () => {
  const bin = join(engineDirectory(), "bin");
  installCommand(`mkdir -p ${bin} && touch ${bin}/pulumi`);
  expect(await findEngine()).toBe(engineDirectory());
  installCommand("exit 1");
  expect(await findEngine()).toBe(engineDirectory());
});

test("another pulumi on the PATH is used unchanged", async () => {
  mkdirSync(join(directory, "home"));
  installCommand("exit 0");
  expect(await findEngine()).toBeUndefined();
});

test("a command that fails is one sentence", async () => {
  installCommand("exit 3");
  await expect(findEngine()).rejects.toThrow(
    "`pulumi version` failed (exit code 3; output above): connect this machine to the network for its download, run `npm ci`, then the same command again.",
  );
});
