import { locateHome } from "./embedded/home.ts";
import { startStack } from "./embedded/stack.ts";
import { readVariable } from "./environment.ts";
import { Failure, sentencesOf } from "./failure.ts";
import { onStopSignals } from "./cli/signals.ts";
import { openLog, reportTo } from "./log.ts";
import {
  becomeRelease,
  goBack,
  readSwitched,
  untilSwitchAsked,
} from "./release/switch.ts";
import { startWatcher } from "./watcher.ts";

const log = openLog();

/** The supervisor alone, as its environment says: HEARTH_RUNTIME=process starts and keeps the embedded stack, docker looks after this host's containers, none only watches. */
async function main(): Promise<void> {
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
      if (!stop.signal.aborted) goBack(home, switched.upgradeFrom, error);
      throw error;
    });
    log.info(stack.addresses, "everything is up");
    const asked = await Promise.race([stopAsked.promise, switchAsked]);
    if (typeof asked === "string") await stack.stop(asked);
    else {
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

main().then(
  () => process.exit(0),
  (error: unknown) => {
    for (const sentence of sentencesOf(error))
      process.stderr.write(`hearth: ${sentence}\n`);
    process.exit(1);
  },
);
