import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { execute } from "../../core/execute.ts";

const { version } = createRequire(import.meta.url)("pulumi/package.json") as {
  readonly version: string;
};

/** Directory where the npm package `pulumi` stores the engine it downloads, as `bin/pulumi`. */
export function engineDirectory(
  home = process.env["PULUMI_HOME"] ?? join(homedir(), ".pulumi"),
): string {
  return join(home, "versions", version);
}

/**
 * Directory of the engine, which is downloaded if necessary; undefined if the `pulumi` on the PATH is not
 * npm's. npm's command is a wrapper that ends on the first Ctrl-C, without waiting for the engine.
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
      `\`pulumi version\` failed (${reason}; output above): connect this machine to the network for its download, run \`npm ci\`, then the same command again.`,
    );
  }
}
