import { setTimeout as sleep } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import type { Running } from "./launch.ts";
import type { ServiceSpec } from "./service-spec.ts";

const PROBE_EVERY_MS = 40;
const PROBE_DEADLINE_MS = 2000;

/** Describes a crash that a service cannot explain: how the program ended, and the most informative line of its log. */
export function describeCrash(
  name: string,
  failure: string,
  log: readonly string[],
): string {
  const informative =
    log.find((line) => /^\S*(Error|Exception)\b.*: /.test(line)) ??
    log.findLast((line) => line.trim() !== "");
  const words = informative === undefined ? "" : `, "${informative.trim()}"`;
  return `${name} did not start (${failure}${words}): run \`hearth logs ${name}\`.`;
}

/** Resolves with undefined when the service is healthy, else with the reason of the failure. */
export async function untilHealthy(
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
    if (await isHealthy(spec, signal)) {
      return undefined;
    }
    await Promise.race([running.ended, sleep(PROBE_EVERY_MS)]);
  }
  return ended ?? "stop requested";
}

/** Probes once with a deadline; errors and timeouts count as unhealthy. Throws the Failures of the probe, which are final. */
export async function isHealthy(
  spec: Pick<ServiceSpec, "probe">,
  signal: AbortSignal,
): Promise<boolean> {
  const limit = AbortSignal.any([
    signal,
    AbortSignal.timeout(PROBE_DEADLINE_MS),
  ]);
  const hung = untilAborted(limit).then(() => false);
  const result = spec.probe(limit).catch((error: unknown) => {
    if (error instanceof Failure) {
      throw error;
    }
    return false;
  });
  return Promise.race([result, hung]);
}

/** Resolves when the signal is aborted; immediately if it is already. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    } else {
      signal.addEventListener("abort", () => resolve(), { once: true });
    }
  });
}
