import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const TOOLCHAIN = fileURLToPath(
  new URL("../../scripts/toolchain.sh", import.meta.url),
);

/**
 * A Python with the packages of `requirements.txt`, which are installed once outside the clone. Null where it is not available, with a line
 * that says why; in CI an error.
 */
export async function pythonOrLeaveOut(): Promise<string | null> {
  try {
    if (spawnSync("python3", ["--version"]).status !== 0) {
      throw new Error("python3 is not installed");
    }
    const { stdout } = await promisify(execFile)(TOOLCHAIN, ["python"]);
    return join(stdout.trim(), "python", "bin", "python3");
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    const reason = (stderr?.trim() || message).split("\n").at(-1);
    const why = `The tests with Python clients cannot run (${reason}): install Python 3.10 or newer with venv and let pip reach its packages.`;
    if (process.env["CI"]) {
      throw new Error(why, { cause: error });
    }
    process.stderr.write(`Skipped: ${why}\n`);
    return null;
  }
}
