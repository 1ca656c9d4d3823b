import { locateHome } from "../supervisor/home/home.ts";
import { startStack } from "./stack.ts";
import { readVariable } from "../core/environment.ts";
import { Failure, sentencesOf } from "../core/failure.ts";
import { onStopSignals } from "../core/signals.ts";
import { openLog, reportTo } from "../supervisor/log.ts";
import {
  becomeRelease,
  switchBack,
  readSwitched,
  untilSwitchAsked,
} from "../supervisor/release/switch.ts";
import { startWatcher } from "./watcher.ts";
import type { WatchedKind } from "./watched-runtime.ts";

const log = openLog();

/** Fired by signals: `stop` ends in order, `halt` at once; `requested` resolves with the reason to stop. */
interface StopSignals {
  readonly stop: AbortSignal;
  readonly halt: AbortSignal;
  readonly requested: PromiseWithResolvers<string>;
}

/**
 * The supervisor that its environment configures: HEARTH_RUNTIME=process starts the embedded stack and keeps it running,
 * docker supervises this host's containers, kubernetes shows the pods of its release, none only runs checks.
 */
async function superviseUntilStopped(): Promise<void> {
  const signals = listenForStop();
  const runtime = readVariable("HEARTH_RUNTIME") ?? "none";
  switch (runtime) {
    case "process":
      await runStack(signals);
      break;
    case "docker":
    case "kubernetes":
    case "none":
      await runWatcher(runtime, signals);
      break;
    default:
      throw new Failure(
        `HEARTH_RUNTIME is "${runtime}": it must be "process" (start and supervise all services on this machine), "docker" (supervise the containers at DOCKER_HOST), "kubernetes" (show the pods of the release HEARTH_RELEASE) or "none" (checks only).`,
      );
  }
  log.info("stopped");
}

function listenForStop(): StopSignals {
  const stop = new AbortController();
  const halt = new AbortController();
  const requested = Promise.withResolvers<string>();
  stop.signal.addEventListener("abort", () => requested.resolve("a signal"));
  onStopSignals(
    (signal) => {
      log.info({ signal }, "stopping");
      stop.abort();
    },
    (signal) => {
      log.warn({ signal }, "second signal: ending immediately");
      halt.abort();
      process.exit(1);
    },
  );
  return { stop: stop.signal, halt: halt.signal, requested };
}

async function runStack({ stop, halt, requested }: StopSignals): Promise<void> {
  const home = locateHome();
  const switched = readSwitched(home);
  const switchRequested = untilSwitchAsked(home);
  const stack = await startStack({
    home,
    ...switched,
    env: process.env,
    echo: readVariable("HEARTH_ECHO") !== "off",
    ...reportTo(log),
    onStopRequested: requested.resolve,
    stop,
    halt,
  }).catch((error: unknown) => {
    if (!stop.aborted) {
      switchBack(home, switched.upgradeFrom, error);
    }
    throw error;
  });
  log.info(stack.addresses, "all services started");
  const reason = await Promise.race([requested.promise, switchRequested]);
  if (typeof reason === "string") {
    await stack.stop(reason);
    return;
  }
  log.info({ release: reason.id }, "switching to another release");
  await stack.leave(`switching to release ${reason.id}`);
  becomeRelease(home, reason);
}

async function runWatcher(
  runtime: WatchedKind,
  { requested }: StopSignals,
): Promise<void> {
  const watcher = await startWatcher({
    home: locateHome(),
    env: process.env,
    runtime,
    ...reportTo(log),
  });
  log.info({ address: watcher.address }, "watching");
  await requested.promise;
  await watcher.stop();
}

/** Ends the process with 0 after a stop, with 1 and a sentence on standard error when it cannot start. */
export async function runSupervisor(): Promise<never> {
  try {
    await superviseUntilStopped();
    process.exit(0);
  } catch (error) {
    for (const sentence of sentencesOf(error)) {
      process.stderr.write(`hearth: ${sentence}\n`);
    }
    process.exit(1);
  }
}
