import { locateHome } from "../supervisor/home/home.ts";
import { startStack } from "./stack.ts";
import { readVariable } from "../core/environment.ts";
import { Failure, sentencesOf } from "../core/failure.ts";
import { onStopSignals } from "./signals.ts";
import { openLog, reportTo } from "../supervisor/log.ts";
import {
  becomeRelease,
  goBack,
  readSwitched,
  untilSwitchAsked,
} from "../supervisor/release/switch.ts";
import { startWatcher } from "./watcher.ts";

const log = openLog();

/**
 * The supervisor as its environment says: HEARTH_RUNTIME=process starts the embedded stack and keeps it running, docker supervises
 * this host's containers, none only watches.
 */
async function superviseUntilStopped(): Promise<void> {
  const stop = new AbortController();
  const halt = new AbortController();
  const stopAsked = Promise.withResolvers<string>();
  stop.signal.addEventListener("abort", () => stopAsked.resolve("a signal"));
  onStopSignals(
    (signal) => {
      log.info({ signal }, "told to stop");
      stop.abort();
    },
    (signal) => {
      log.warn({ signal }, "told again: ending at once");
      halt.abort();
      process.exit(1);
    },
  );
  const report = reportTo(log);
  const runtime = readVariable("HEARTH_RUNTIME") ?? "none";
  if (runtime === "process") {
    const home = locateHome();
    const switched = readSwitched(home);
    const switchAsked = untilSwitchAsked(home);
    const stack = await startStack({
      home,
      ...switched,
      env: process.env,
      echo: readVariable("HEARTH_ECHO") !== "off",
      ...report,
      onStopAsked: stopAsked.resolve,
      stop: stop.signal,
      halt: halt.signal,
    }).catch((error: unknown) => {
      if (!stop.signal.aborted) {
        goBack(home, switched.upgradeFrom, error);
      }
      throw error;
    });
    log.info(stack.addresses, "everything is up");
    const asked = await Promise.race([stopAsked.promise, switchAsked]);
    if (typeof asked === "string") {
      await stack.stop(asked);
    } else {
      log.info({ release: asked.id }, "switching to another release");
      await stack.leave(`switching to release ${asked.id}`);
      becomeRelease(home, asked);
    }
  } else if (runtime === "docker" || runtime === "none") {
    const watcher = await startWatcher({
      home: locateHome(),
      env: process.env,
      containers: runtime === "docker",
      ...report,
    });
    log.info({ address: watcher.address }, "watching");
    await stopAsked.promise;
    await watcher.stop();
  } else {
    throw new Failure(
      `HEARTH_RUNTIME is "${runtime}": it must be process (start and keep everything on this machine), docker (look after the containers that DOCKER_HOST shows) or none (only watch).`,
    );
  }
  log.info("stopped");
}

/** Ends the process: with 0 after a stop, with 1 and a sentence on standard error when it cannot start. */
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
