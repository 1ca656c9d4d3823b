import { setTimeout as wait } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import type { Running } from "./launch.ts";
import type { ServiceSpec } from "./service-spec.ts";

const PROBE_EVERY_MS = 40;
const PROBE_DEADLINE_MS = 2000;

/** One sentence for a program that gave none itself: how it ended, and the most telling line that it wrote. */
export function describeCrash(
  name: string,
  failure: string,
  log: readonly string[],
): string {
  const telling =
    log.find((line) => /^\S*(Error|Exception)\b.*: /.test(line)) ??
    log.findLast((line) => line.trim() !== "");
  const words = telling === undefined ? "" : `, "${telling.trim()}"`;
  return `${name} did not start (${failure}${words}): \`hearth logs ${name}\` shows more.`;
}

/** Resolves with nothing when the service is well, else with why it will not be. */
export async function untilWell(
  spec: ServiceSpec,
  running: Running,
  signal: AbortSignal,
): Promise<string | undefined> {
  let ended: string | undefined;
  void running.ended.then((how) => {
    ended = how;
  });
  const deadline = performance.now() + spec.startWithinMs;
  while (ended === undefined && !signal.aborted) {
    if (performance.now() > deadline) {
      return `not healthy after ${inWords(spec.startWithinMs)}`;
    }
    if (await looksWell(spec, signal)) {
      return undefined;
    }
    await Promise.race([running.ended, wait(PROBE_EVERY_MS)]);
  }
  return ended ?? "told to stop";
}

/** One look with a deadline; what fails or hangs is not well. Throws what the probe calls hopeless. */
export async function looksWell(
  spec: Pick<ServiceSpec, "probe">,
  signal: AbortSignal,
): Promise<boolean> {
  const limit = AbortSignal.any([
    signal,
    AbortSignal.timeout(PROBE_DEADLINE_MS),
  ]);
  const hung = untilAborted(limit).then(() => false);
  const seen = spec.probe(limit).catch((error: unknown) => {
    if (error instanceof Failure) {
      throw error;
    }
    return false;
  });
  return Promise.race([seen, hung]);
}

/** Resolves when the signal is aborted, at once when it was before. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    } else {
      signal.addEventListener("abort", () => resolve(), { once: true });
    }
  });
}
