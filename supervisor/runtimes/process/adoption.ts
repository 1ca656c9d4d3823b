import { Failure } from "../../../core/failure.ts";
import type { History } from "../../history/history.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { findLeftSuccessor, handOver } from "./hand-over.ts";
import { isHealthy } from "./health.ts";
import type { ProcessIdentity } from "./identity.ts";
import { aliveIn, type RunFile } from "./run-file.ts";
import type { ServiceSpec } from "./service-spec.ts";
import { stopProcess } from "./stop.ts";

interface AdoptionOptions {
  readonly history: History;
  readonly logFile: string;
  readonly fingerprintKey: string;
  /** A service of the previous release that fails to hand over must keep running. */
  readonly upgrading: boolean;
}

/**
 * The process of the previous supervisor if it is certainly ours and healthy, or the successor it started. Other processes are
 * stopped. Undefined if the service must be started.
 */
export async function adoptProcess(
  spec: ServiceSpec,
  recorded: RunFile["services"][string] | undefined,
  { history, logFile, fingerprintKey, upgrading }: AdoptionOptions,
): Promise<ProcessIdentity | undefined> {
  const { name } = spec;
  await stopLeftSuccessor(spec, history);
  const entry = aliveIn(recorded);
  if (entry === undefined) {
    return undefined;
  }
  const { pid, startTime, successorFile } = entry;
  const identity = { pid, startTime };
  const isSame = entry.fingerprint === fingerprintOf(spec, fingerprintKey);
  const healthy = await isHealthy(spec, new AbortController().signal).catch(
    () => false,
  );
  if (isSame && healthy) {
    history.act(
      name,
      "adopt",
      `pid ${pid} of the previous supervisor is healthy`,
    );
    return identity;
  }
  if (healthy && successorFile != null) {
    const successor = await handOver(identity, successorFile, spec, logFile);
    if (successor !== undefined) {
      history.act(
        name,
        "adopt",
        `pid ${pid} of the previous supervisor handed over to pid ${successor.pid}`,
      );
      return successor;
    }
    if (upgrading) {
      throw new Failure(
        `the ${name} of this release did not take over: run \`hearth logs ${name}\`.`,
      );
    }
  }
  history.act(
    name,
    "stop",
    `pid ${pid} of the previous supervisor ${isSame ? "is not healthy" : "was started with other settings"}`,
  );
  await stopProcess(identity, spec.stopSignal, spec.stopWithinMs);
  return undefined;
}

/** A supervisor that was killed during a hand-over left a process that would keep the port. */
async function stopLeftSuccessor(
  { name, successorFile, stopSignal, stopWithinMs }: ServiceSpec,
  history: History,
): Promise<void> {
  const successor =
    successorFile === undefined ? undefined : findLeftSuccessor(successorFile);
  if (successor !== undefined) {
    history.act(
      name,
      "stop",
      `pid ${successor.pid} was taking over when the previous supervisor ended`,
    );
    await stopProcess(successor, stopSignal, stopWithinMs);
  }
}
