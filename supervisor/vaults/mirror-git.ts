import { existsSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { execute } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";
import { MIRROR_DATA } from "./mirror-folder.ts";

const COMMIT_EVERY_MS = 15 * 60_000;

/** A mirror's folder as a git repository. */
export interface MirrorGit {
  /** Commits what changed, if the last commit was a quarter of an hour ago or there was none. */
  readonly commitIfDue: () => Promise<void>;
  readonly commit: () => Promise<void>;
}

/** Makes the folder a repository unless it is one. Throws a Failure without git. */
export async function openMirrorGit(
  directory: string,
  vault: string,
  now: () => number,
): Promise<MirrorGit> {
  /** Neither hooks nor a signing key of the user: nothing must ask for input. Bytes stay as they are on the devices. */
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
      { cwd: directory },
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
  let committedAt = -Infinity;

  const commit = async (): Promise<void> => {
    // A vault's own .gitignore hides nothing.
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
