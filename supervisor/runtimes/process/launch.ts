import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { startTimeOf, untilGone, type ProcessIdentity } from "./identity.ts";

/** How to start one program. Secrets go in by environment, never by arguments. */
export interface LaunchPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
}

export type Running = ProcessIdentity & {
  /** Resolves with how it ended, in words ("exit code 1", "killed by SIGKILL"). */
  readonly ended: Promise<string>;
};

/**
 * Starts a program in a process group of its own (Ctrl-C in our terminal does not reach it), its output appended to a
 * file and not to a pipe: it goes on when we die. Rejects when the program cannot be started at all.
 */
export async function launch(
  plan: LaunchPlan,
  logFile: string,
): Promise<Running> {
  const log = openSync(logFile, "a", 0o600);
  try {
    const child = spawn(plan.file, plan.args, {
      cwd: plan.cwd,
      env: { ...plan.env },
      detached: true,
      stdio: ["ignore", log, log],
      ...(plan.uid === undefined ? {} : { uid: plan.uid, gid: plan.gid }),
    });
    const ended = new Promise<string>((resolve) => {
      child.once("exit", (code, signal) =>
        resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`),
      );
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
    const pid = child.pid ?? 0;
    return { pid, startTime: startTimeOf(pid) ?? "ended", ended };
  } finally {
    closeSync(log);
  }
}

/** Watches a process that an earlier supervisor started as if it were our own. */
export function takeOver(identity: ProcessIdentity): Running {
  return {
    ...identity,
    ended: untilGone(identity).then(
      () => "ended (it was not our child, so its exit code is not known)",
    ),
  };
}
