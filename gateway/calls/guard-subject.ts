import type { Gateway } from "../gateway.ts";
import type { Subject } from "../guardrails/guard.ts";
import type { Call } from "./call.ts";
import { moderate } from "./moderate.ts";

/** A call as its guardrails see it. */
export function subjectOf(
  gateway: Gateway,
  call: Call,
  inputType: Subject["inputType"],
): Subject {
  const { tools } = call.body;
  return {
    callId: call.id,
    sessionId: call.sessionId,
    caller: call.caller,
    endUser: call.payers.endUser,
    inputType,
    tools: inputType === "request" && Array.isArray(tools) ? tools : null,
    moderate: (model, texts) => moderate(gateway, call, model, texts),
  };
}
