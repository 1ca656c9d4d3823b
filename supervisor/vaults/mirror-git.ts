import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import { dirname, join, resolve } from "node:path";
import { MINUTE_MS } from "../../core/duration.ts";
import type { Environment } from "../../core/environment.ts";
import { execute } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";
import { MIRROR_DATA } from "./mirror-folder.ts";

const COMMIT_EVERY_MS = 15 * MINUTE_MS;
/** Others would name another repository (GIT_DIR, GIT_INDEX_FILE), which a hook of git or an editor sets, or are secrets. */
const PASSED_VARIABLES = [
  "PATH",
  "HOME",
  "XDG_CONFIG_HOME",
  "TMPDIR",
  "DEVELOPER_DIR",
];
/** Takes precedence over files in the vault, with which a member could change what is committed, run filters or let `git add` fail. */
const ATTRIBUTES = "* -text -ident -filter -working-tree-encoding\n";

/** The folder of a mirror as a git repository. */
interface MirrorGit {
  /** Commits changes, at most every 15 minutes. */
  readonly commitIfDue: () => Promise<void>;
  readonly commit: () => Promise<void>;
}

/** Initializes the repository unless it exists. Throws a Failure without git. */
export async function openMirrorGit(
  directory: string,
  vault: string,
  now: () => number,
): Promise<MirrorGit> {
  /** Neither hooks nor a signing key of the user: nothing must ask for input. Bytes are identical to those on the devices. */
  const git = async (...words: readonly string[]): Promise<string> => {
    const settings = [
      "commit.gpgSign=false",
      `core.hooksPath=${devNull}`,
      "core.autocrlf=false",
      "core.fsmonitor=false",
      "gc.autoDetach=false",
      "user.name=Hearth",
      "user.email=hearth@localhost",
    ].flatMap((setting) => ["-c", setting]);
    const { ok, stdout, stderr, startError, reason } = await execute(
      "git",
      [...settings, ...words],
      { cwd: directory, env: passedVariables() },
    );
    if (!ok) {
      throw new Failure(
        startError === "ENOENT"
          ? "git is not installed: install it, or run the mirror without --git."
          : `git ${words[0]} failed in ${directory}: ${stderr.trim() || reason}`,
      );
    }
    return stdout;
  };
  if (!existsSync(join(directory, ".git"))) {
    await git("init", "--quiet");
  }
  const attributes = await git("rev-parse", "--git-path", "info/attributes");
  const attributesFile = resolve(directory, attributes.trim());
  mkdirSync(dirname(attributesFile), { recursive: true });
  writeFileSync(attributesFile, ATTRIBUTES);
  let committedAt = -Infinity;

  const commit = async (): Promise<void> => {
    // A .gitignore in the vault has no effect.
    await git("add", "--all", "--force", "--", ".", `:(exclude)${MIRROR_DATA}`);
    if ((await git("diff", "--cached", "--name-only")) !== "") {
      await git(
        "commit",
        "--quiet",
        "--message",
        `Vault ${vault} at ${new Date(now()).toISOString()}`,
      );
    }
    committedAt = now();
  };
  return {
    commit,
    commitIfDue: async () => {
      if (now() - committedAt >= COMMIT_EVERY_MS) {
        await commit();
      }
    },
  };
}

function passedVariables(): Environment {
  return Object.fromEntries(
    PASSED_VARIABLES.map((name) => [name, process.env[name]]),
  );
}
