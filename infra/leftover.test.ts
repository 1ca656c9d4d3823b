import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { registerBy } from "../test/infra/registered.ts";
import { validConfig } from "../test/infra/stack-config.ts";
import { readStackConfig } from "./config/program-config.ts";
import { createHosts } from "./hosts.ts";
import { rejectForeignVolumes, removeLeftover } from "./leftover.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-leftover-"));
  // A fake host with one container of Hearth, which records the other commands.
  writeFileSync(
    join(directory, "ssh"),
    `#!/bin/sh
case "$*" in
  *"'ps'"*) echo "id hearth-gateway sum hearth/home" ;;
  *"'ls'"*) echo "hearth-postgres hearth/home"; echo "hearth-notes hearth/other" ;;
  *) echo "$*" >> ${directory}/commands ;;
esac
`,
  );
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/** The docker commands that changed something. */
function commands(): readonly string[] {
  return readFileSync(join(directory, "commands"), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.replace(/^.* 'docker' /, "").replaceAll("'", ""));
}

const engine = {
  endpoint: "ssh://root@192.168.1.10",
  sshOpts: [],
  prefix: "hearth",
  stack: "hearth/home",
};

test.each([
  ["its grace period", 135, "135"],
  ["a minute without one", undefined, "60"],
])("a leftover is stopped within %s", async (_within, grace, seconds) => {
  await removeLeftover(engine, "hearth-gateway", grace);
  expect(commands()).toEqual([`stop --time ${seconds} id`, "rm --force id"]);
});

test("the leftover of a container that is created again finishes its calls, for as long as the new one may", async () => {
  const { given: hosts } = await registerBy(
    async () => createHosts(readStackConfig()),
    validConfig,
  );
  await hosts.a.beforeCreate.callback({
    newInputs: { name: "hearth-gateway", destroyGraceSeconds: 135 },
  } as unknown as Parameters<typeof hosts.a.beforeCreate.callback>[0]);
  expect(commands()).toEqual(["stop --time 135 id", "rm --force id"]);
});

test("a volume of another stack is rejected; those of this stack and of other names are not", async () => {
  await rejectForeignVolumes(engine, ["hearth-postgres", "hearth-redis"]);
  await expect(
    rejectForeignVolumes(engine, ["hearth-postgres", "hearth-notes"]),
  ).rejects.toThrow("the stack hearth/other has the volume hearth-notes on");
});
