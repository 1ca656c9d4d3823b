import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A pinned PyPI package. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
}

const OPENAI: PythonPackage = { name: "openai", version: "3.54.0" };

/** A Python with the package; null with a log line where it is not available, and an error in CI. */
export async function pythonOrLeaveOut(
  wanted: PythonPackage = OPENAI,
): Promise<string | null> {
  const found = await pythonWith(wanted);
  if (found.kind === "found") {
    return found.python;
  }
  if (process.env["CI"]) {
    throw new Error(found.why);
  }
  process.stderr.write(`skipped: ${found.why}\n`);
  return null;
}

/** A Python, or the reason why there is none. */
type FoundPython =
  | { readonly kind: "found"; readonly python: string }
  | { readonly kind: "missing"; readonly why: string };

/** The Python of a virtual environment that is kept between runs, in a cache outside the project. */
async function pythonWith({
  name,
  version,
}: PythonPackage): Promise<FoundPython> {
  const cache = join(
    process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
    "hearth",
  );
  const place = join(cache, `python-${name}-${version}`);
  const python = join(place, "bin", "python3");
  if (existsSync(python)) {
    return { kind: "found", python };
  }
  // Another run may be creating it: each creates its own, and the first to finish is kept.
  const own = `${place}.${createHash("sha256").update(`${process.pid}`).digest("hex").slice(0, 8)}`;
  try {
    mkdirSync(cache, { recursive: true });
    await run("python3", ["-m", "venv", own]);
    await run(join(own, "bin", "python3"), [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      `${name}==${version}`,
    ]);
    renameSync(own, place);
    return { kind: "found", python };
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (existsSync(python)) {
      return { kind: "found", python };
    }
    const { stderr, message } = error as { stderr?: string; message: string };
    const reason = (stderr?.trim() || message).split("\n").at(-1);
    return {
      kind: "missing",
      why: `Python's ${name} ${version} cannot be run here (${reason}): install Python 3 with venv and let pip reach its packages.`,
    };
  }
}
