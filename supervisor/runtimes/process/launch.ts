import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { startTimeOf, untilGone, type ProcessIdentity } from "./identity.ts";

/** How to start a program. Secrets are passed in its environment, never in arguments. */
export interface LaunchPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
}

export type Running = ProcessIdentity & {
  /** Resolves with the reason of its end: "exit code 1", "killed by SIGKILL". */
  readonly ended: Promise<string>;
};

/**
 * Starts a program in its own process group (Ctrl-C in this terminal does not reach it) with its output appended to a file, so
 * that it survives this process. Rejects if the program cannot be started.
 *
 * Uses node:child_process, not core/execute.ts: nothing is piped or awaited here, so execa would add only its memory to a
 * supervisor that runs permanently.
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
    try {
      return { pid, startTime: startTimeOf(pid) ?? "ended", ended };
    } catch (error) {
      // Without its start time nothing could stop it later.
      child.kill("SIGKILL");
      throw error;
    }
  } finally {
    closeSync(log);
  }
}

/** Watches a process of the previous supervisor like a child of this one. */
export function takeOver(identity: ProcessIdentity): Running {
  return {
    ...identity,
    ended: untilGone(identity).then(
      () => "ended (exit code unknown: started by the previous supervisor)",
    ),
  };
}
