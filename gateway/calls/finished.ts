import type { Gateway } from "../gateway.ts";
import type { Outcome } from "../ledger/records.ts";
import { recordOf, textOf } from "../../core/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { isUnlogged } from "./options.ts";
import { webhookPayload, type FailureFacts } from "./webhook-payload.ts";

/** What of a call's end is not in its outcome. */
interface Finish {
  readonly deployment: PricedDeployment | null;
  /** The answer as JSON; null: there is none that can be shown. */
  readonly response: () => string | null;
}

type FinishPorts = Pick<Gateway, "config" | "traces" | "webhook">;

/** Passes a finished call on to its trace and to the webhook. Neither is awaited, and neither fails the call. */
export function reportFinished(
  { config, traces, webhook }: FinishPorts,
  call: Call,
  outcome: Outcome,
  { deployment, response }: Finish,
): void {
  const toWebhook = webhook !== null && webhook.wants(outcome.status);
  if (call.trace === null && !toWebhook) {
    return;
  }
  const failure = failureOf(outcome);
  const mayShow = !isUnlogged(config, call.options);
  if (call.trace !== null) {
    endTrace(call, outcome, failure, {
      body: (call.whole ?? call).body,
      show: mayShow && traces?.content === true,
      response,
    });
  }
  if (toWebhook) {
    webhook.add(
      webhookPayload(
        call,
        outcome,
        deployment?.apiBase ?? null,
        failure,
        mayShow && webhook.content ? { response: response() } : null,
      ),
    );
  }
}

function endTrace(
  call: Call,
  outcome: Outcome,
  failure: FailureFacts | null,
  content: {
    readonly body: Call["body"];
    readonly show: boolean;
    readonly response: () => string | null;
  },
): void {
  const metadata = outcome.metadata ?? {};
  call.trace?.end({
    status: outcome.status,
    startedAt: call.startedAt,
    firstTokenAt: outcome.firstTokenAt,
    responseId: outcome.responseId,
    cache: outcome.cacheHit
      ? "hit"
      : call.cacheKey === null
        ? "bypass"
        : "miss",
    inputTokens: outcome.promptTokens,
    outputTokens: outcome.completionTokens,
    cacheReadTokens: outcome.cachedTokens,
    cacheWriteTokens: outcome.cacheWriteTokens,
    cost: outcome.spend,
    saved: outcome.saved,
    estimated: metadata["estimated"] === true,
    clientDisconnected: metadata["client_disconnected"] === true,
    error: failure,
    content: content.show
      ? { body: content.body, response: content.response() }
      : null,
  });
}

function failureOf({ status, metadata }: Outcome): FailureFacts | null {
  if (status === "success") {
    return null;
  }
  const error = recordOf(metadata?.["error_information"]);
  return {
    type: textOf(error["error_code"]) || "error",
    message: textOf(error["error_message"]) || "the call failed",
  };
}
