import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { execute } from "../../core/execute.ts";
import { inProject } from "../project-files.ts";

/** Runs `npm run images` with a docker that only records its arguments. */
async function runImages(args: readonly string[]) {
  const directory = mkdtempSync(join(tmpdir(), "hearth-images-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const recorded = join(directory, "arguments");
  const docker = join(directory, "docker");
  writeFileSync(docker, `#!/bin/sh\nprintf '%s\\n' "$@" >${recorded}\n`);
  chmodSync(docker, 0o755);
  const result = await execute(
    process.execPath,
    [inProject("infra/images/build.ts"), ...args],
    {
      env: {
        ...process.env,
        PATH: `${directory}:${process.env["PATH"] ?? ""}`,
      },
    },
  );
  return { ...result, docker: readFileSync(recorded, "utf8").split("\n") };
}

test("an image gets the hash of its content and the project's version as tags", async () => {
  const { version } = JSON.parse(
    readFileSync(inProject("package.json"), "utf8"),
  ) as { readonly version: string };
  const { ok, stdout, docker } = await runImages([
    "supervisor",
    "--build",
    "--tag",
    "registry.example.org/hearth",
    "--rclone",
  ]);
  expect(ok).toBe(true);
  const [, hash, directory = ""] =
    /^supervisor ([0-9a-f]{16}) (.*)$/m.exec(stdout) ?? [];
  expect(docker.slice(0, -1)).toEqual([
    "build",
    "--tag",
    `registry.example.org/hearth/supervisor:${hash}`,
    "--tag",
    `registry.example.org/hearth/supervisor:${version}`,
    directory,
  ]);
  expect(readFileSync(join(directory, "Dockerfile"), "utf8")).toContain(
    "apt-get install --yes --no-install-recommends ca-certificates rclone",
  );
});
