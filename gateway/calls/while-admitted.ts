import type { ServerResponse } from "node:http";
import type { Gateway } from "../gateway.ts";
import { CallError, loggedMessage } from "../http/errors.ts";
import type { Call } from "./call.ts";
import { inputUsage } from "../tokens/usage.ts";
import { endCall, type RecordPorts } from "./record.ts";

/**
 * Runs `work` for an admitted call. If it throws before the call was recorded, the call is recorded here and its
 * reservation released: nothing stays open, whatever the error. `client` receives the answer, which occupies memory until then.
 */
export async function whileAdmitted<T>(
  gateway: RecordPorts & Pick<Gateway, "bodies" | "log">,
  call: Call,
  client: ServerResponse | null,
  work: () => Promise<T>,
): Promise<T> {
  const { activeCalls, bodies, limits } = gateway;
  activeCalls.admitted(call.id);
  try {
    return await work();
  } catch (error) {
    if (activeCalls.hasOpenIntent(call.id)) {
      await recordFailure(gateway, call, error);
    } else {
      await limits.settle({ callId: call.id, tokens: 0, pending: [] });
    }
    throw error;
  } finally {
    activeCalls.ended(call.id);
    if (client === null || client.writableFinished || client.destroyed) {
      bodies.release(call.id);
    } else {
      client.once("close", () => bodies.release(call.id));
    }
  }
}

async function recordFailure(
  gateway: RecordPorts & Pick<Gateway, "log">,
  call: Call,
  error: unknown,
): Promise<void> {
  if (!(error instanceof CallError)) {
    gateway.log.error({ error, call: call.id }, "a call failed unexpectedly");
  }
  const deployment = gateway.activeCalls.answeredBy(call.id);
  await endCall(gateway, call, {
    status: "failure",
    deployment,
    // A provider that had started to answer charges for the input.
    usage: deployment === null ? null : inputUsage(call, deployment),
    estimated: deployment !== null,
    firstTokenAt: null,
    responseId: null,
    cached: null,
    waitedMs: null,
    metadata: {
      error_information: {
        error_message:
          error instanceof CallError ? loggedMessage(error) : "internal error",
      },
    },
  });
}
