import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { execute } from "../../core/execute.ts";

const { version } = createRequire(import.meta.url)("pulumi/package.json") as {
  readonly version: string;
};

/** Where the npm package `pulumi` keeps the engine that it downloads: `bin/pulumi` below it. */
export function engineDirectory(
  home = process.env["PULUMI_HOME"] ?? join(homedir(), ".pulumi"),
): string {
  return join(home, "versions", version);
}

/**
 * The directory of the engine itself, downloaded if it was not yet; undefined when the `pulumi` on the PATH is another one than
 * npm's. npm's command is a small program around the engine that ends at the first Ctrl-C, and leaves the engine to itself.
 */
export async function findEngine(): Promise<string | undefined> {
  const directory = engineDirectory();
  const isThere = () => existsSync(join(directory, "bin", "pulumi"));
  if (!isThere()) {
    await runVersion();
  }
  return isThere() ? directory : undefined;
}

/** Progress of the download is shown to the operator. */
async function runVersion(): Promise<void> {
  const { ok, reason } = await execute("pulumi", ["version"], {
    stdout: "ignore",
    stderr: "inherit",
  });
  if (!ok) {
    throw new Error(
      `\`pulumi version\` failed (${reason}; output above): run \`npm ci\`, then the same command again.`,
    );
  }
}
