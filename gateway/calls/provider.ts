import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { ProviderAnswer } from "../providers/client.ts";
import {
  isRetryable,
  upstreamMessage,
  UpstreamFailure,
} from "../providers/failure.ts";
import { openaiBody } from "../providers/openai.ts";
import { chooseDeployment } from "../routing/choose.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { endCall } from "./record.ts";

/** An answer under way, from the deployment that gave it. */
export interface Upstream extends ProviderAnswer {
  readonly deployment: PricedDeployment;
  readonly attempts: readonly Attempt[];
  /** Stops the provider's work. */
  abort(): void;
}

/** An attempt that failed; kept in the row's metadata. */
export interface Attempt {
  readonly model_id: string;
  readonly status: number;
  readonly error: string;
}

const FIRST_BACKOFF_MS = 200;
const MOST_BACKOFF_MS = 5_000;

/**
 * Sends a call to the chosen deployment, and on a failure that another attempt may mend again: to another deployment
 * at once, to the same one after a growing pause. When all failed, the failure is journaled, settled and thrown.
 */
export async function callProvider(
  gateway: Gateway,
  call: Call,
  first: PricedDeployment,
): Promise<Upstream> {
  const attempts: Attempt[] = [];
  const tried: PricedDeployment[] = [];
  let deployment = first;
  for (;;) {
    const aborter = new AbortController();
    try {
      const answer = await gateway.providers.send({
        deployment,
        path: call.kind.path,
        callId: call.id,
        body: openaiBody(call.body, deployment, call.stream),
        stream: call.stream,
        signal: aborter.signal,
      });
      return { ...answer, deployment, attempts, abort: () => aborter.abort() };
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      attempts.push({
        model_id: deployment.id,
        status: error.status,
        error: upstreamMessage(error),
      });
      tried.push(deployment);
      const retries = deployment.maxRetries ?? gateway.config.router.numRetries;
      if (attempts.length > retries || !isRetryable(error))
        throw await giveUp(gateway, call, deployment, error, attempts);
      const next = chooseDeployment(call.group, tried);
      if (tried.includes(next))
        await sleep(backoff(attempts.length, error.retryAfterMs));
      deployment = next;
    }
  }
}

async function giveUp(
  gateway: Gateway,
  call: Call,
  deployment: PricedDeployment,
  failure: UpstreamFailure,
  attempts: readonly Attempt[],
): Promise<CallError> {
  const message = upstreamMessage(failure);
  await endCall(gateway, call, {
    status: "failure",
    deployment,
    usage: null,
    firstTokenAt: null,
    responseId: null,
    cached: null,
    metadata: {
      error_information: {
        error_code: String(failure.status),
        error_message: message,
      },
      attempts,
    },
  });
  const headers: Record<string, string> = {
    "x-hearth-attempted-retries": String(attempts.length - 1),
  };
  if (failure.retryAfterMs !== null)
    headers["retry-after"] = String(Math.ceil(failure.retryAfterMs / 1_000));
  return new CallError("upstream_error", `${call.group.alias}: ${message}`, {
    status: failure.status,
    headers,
  });
}

function backoff(attempt: number, asked: number | null): number {
  if (asked !== null) return Math.min(asked, MOST_BACKOFF_MS);
  const step = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MOST_BACKOFF_MS);
  return step / 2 + Math.random() * (step / 2);
}
