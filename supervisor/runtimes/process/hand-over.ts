import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { writeDurably } from "../../../core/durable-file.ts";
import { untilHealthy } from "./health.ts";
import { isAlive, startTimeOf, type ProcessIdentity } from "./identity.ts";
import { takeOver } from "./launch.ts";
import type { ServiceSpec } from "./service-spec.ts";
import { killGroup, sendSignal } from "./stop.ts";

const POLL_EVERY_MS = 25;
const STARTED_WITHIN_MS = 10_000;

/**
 * Lets a running process start its successor according to `spec` and end when that is ready, so that no connection is refused.
 * Returns the healthy successor; undefined if it failed, and then the process may still be running.
 */
export async function handOver(
  running: ProcessIdentity,
  successorFile: string,
  spec: ServiceSpec,
  log: string,
): Promise<ProcessIdentity | undefined> {
  const { file, args, cwd, env } = spec.plan();
  const started = startedFileOf(successorFile);
  rmSync(started, { force: true });
  try {
    try {
      writeDurably(
        successorFile,
        JSON.stringify({ file, args, cwd, env, log, started }),
      );
    } catch {
      // On a full disk it can still be stopped and started.
      return undefined;
    }
    sendSignal(running, "SIGUSR2");
    const successor = await untilStarted(started, running);
    if (successor === undefined) {
      return undefined;
    }
    recordSuccessor(started, successor);
    const deadline = performance.now() + spec.startWithinMs + spec.stopWithinMs;
    while (
      isAlive(running) &&
      isAlive(successor) &&
      performance.now() < deadline
    ) {
      await sleep(POLL_EVERY_MS);
    }
    const failure = isAlive(running)
      ? "it did not take over"
      : await untilHealthy(
          spec,
          takeOver(successor),
          new AbortController().signal,
        );
    if (failure === undefined) {
      return successor;
    }
    killGroup(successor);
    return undefined;
  } finally {
    // It contains variables, which may be keys.
    rmSync(successorFile, { force: true });
    rmSync(started, { force: true });
  }
}

/** The successor of a hand-over that ended with its supervisor, if it is alive: no entry of run.json names it. */
export function findLeftSuccessor(
  successorFile: string,
): ProcessIdentity | undefined {
  try {
    const text = readFileSync(startedFileOf(successorFile), "utf8");
    const [, pid, startTime] = /^(\d+)\n(.+)\n$/.exec(text) ?? [];
    if (pid === undefined || startTime === undefined) {
      return undefined;
    }
    const successor = { pid: Number(pid), startTime };
    return isAlive(successor) ? successor : undefined;
  } catch {
    return undefined;
  }
}

function startedFileOf(successorFile: string): string {
  return `${successorFile}.started`;
}

/** Adds the start time: after a restart of the machine, another program may have the process id. */
function recordSuccessor(
  started: string,
  { pid, startTime }: ProcessIdentity,
): void {
  try {
    writeDurably(started, `${pid}\n${startTime}\n`);
  } catch {
    // On a full disk the hand-over continues; only a kill of this supervisor meanwhile would leave the successor unknown.
  }
}

async function untilStarted(
  started: string,
  running: ProcessIdentity,
): Promise<ProcessIdentity | undefined> {
  const deadline = performance.now() + STARTED_WITHIN_MS;
  while (isAlive(running) && performance.now() < deadline) {
    const successor = readStarted(started);
    if (successor !== undefined) {
      return successor;
    }
    await sleep(POLL_EVERY_MS);
  }
  return undefined;
}

/** undefined until both can be read: it has started, and a file descriptor is free. */
function readStarted(path: string): ProcessIdentity | undefined {
  try {
    const pid = Number(/^(\d+)\n$/.exec(readFileSync(path, "utf8"))?.[1] ?? 0);
    const startTime = pid === 0 ? undefined : startTimeOf(pid);
    return startTime === undefined ? undefined : { pid, startTime };
  } catch {
    return undefined;
  }
}
