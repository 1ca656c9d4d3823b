import { resolveWithin } from "../../../core/resolve-within.ts";
import { codeOf } from "../../../core/failure.ts";
import { isAlive, untilGone, type ProcessIdentity } from "./identity.ts";

/**
 * Sends a signal to a process, waits `withinMs`, then kills its whole group. Returns whether it ended by itself.
 */
export async function stopProcess(
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
  withinMs: number,
): Promise<"went" | "forced"> {
  sendSignal(identity, signal);
  const gone = untilGone(identity, 25).then(() => "went" as const);
  if ((await resolveWithin(gone, withinMs)) === "went") {
    return "went";
  }
  killGroup(identity);
  await gone;
  return "forced";
}

/** Sends a signal to this process; does nothing if it has ended. */
export function sendSignal(
  identity: ProcessIdentity,
  signal: NodeJS.Signals,
): void {
  if (isAlive(identity)) {
    deliver(identity.pid, signal);
  }
}

/** Sends SIGKILL to the process group. */
export function killGroup(identity: ProcessIdentity): void {
  if (isAlive(identity)) {
    deliver(-identity.pid, "SIGKILL");
  }
}

function deliver(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") {
      throw error;
    }
  }
}
