import type { Gateway } from "../gateway.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { coldLoadMs } from "../runners/load-model.ts";
import { isManaged } from "../runners/runners.ts";
import type { Call } from "./call.ts";
import type { WaitingClient } from "./waiting-client.ts";

export interface ColdLoadOptions {
  /** null: none waits. */
  readonly client: WaitingClient | null;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

type Ports = Pick<Gateway, "runners">;

/** Until its first byte, in ms; null: as configured. */
type Send<T> = (firstByteMs: number | null) => Promise<T>;

/** Faster loads keep the status and the headers of the answer. */
const LOAD_NOTIFY_AFTER_MS = 2_000;

/**
 * Sends a call to a deployment. A local runner that has not loaded the model does so first, within `cold_load_timeout`; the
 * client of a stream is notified. What fails meanwhile is thrown, so that another attempt can follow.
 */
export async function whenLoaded<T>(
  gateway: Ports,
  call: Call,
  deployment: PricedDeployment,
  options: ColdLoadOptions,
  send: Send<T>,
): Promise<T> {
  const { runners } = gateway;
  if (!isManaged(deployment) || call.ownAccess) {
    return send(null);
  }
  if (!(await runners.isCold(deployment))) {
    try {
      return await send(null);
    } catch (error) {
      if (!(await wasCold(gateway, deployment, error))) {
        throw error;
      }
    }
  }
  const stopNotifying = options.client?.notify(
    () => `loading model ${call.group.alias}`,
    LOAD_NOTIFY_AFTER_MS,
  );
  try {
    await runners.load(deployment, options.signal, true);
    const isLoaded = runners.loadingOf(deployment) === "loaded";
    return await send(isLoaded ? null : coldLoadMs(deployment));
  } finally {
    stopNotifying?.();
  }
}

/** llama.cpp rejects calls while it loads its model. */
const LOADING = /loading model/i;

/** Whether a call failed because its runner started to load the model since the latest probe. */
async function wasCold(
  { runners }: Ports,
  deployment: PricedDeployment,
  error: unknown,
): Promise<boolean> {
  const isCold =
    error instanceof UpstreamFailure &&
    error.status === 503 &&
    LOADING.test(error.message) &&
    runners.stateOf(deployment) !== null;
  if (isCold) {
    await runners.refresh(deployment);
  }
  return isCold;
}
