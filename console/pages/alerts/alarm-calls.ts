import { callsHref } from "../calls/call-choice.ts";

/** The calls that an alarm about spend or a model is about, by its fingerprint; null: it is about no calls. */
export function callsOfAlarm(fingerprint: string): string | null {
  const [, budgetOf, payer] =
    /^(?:soft-budget|budget:\d+):(key|user|team|tag):(.+)$/s.exec(
      fingerprint,
    ) ?? [];
  if (budgetOf !== undefined && payer !== undefined) {
    return callsHref({ [budgetOf]: payer });
  }
  const [, kind, name] =
    /^(unusual-spend|unpriced-model|model:failures|model:delay):(.+)$/s.exec(
      fingerprint,
    ) ?? [];
  switch (kind) {
    case "unusual-spend":
      return callsHref({ key: name ?? "" });
    case "model:failures":
      return callsHref({ status: "failure", model: name ?? "" });
    case "unpriced-model":
    case "model:delay":
      return callsHref({ model: name ?? "" });
    default:
      return null;
  }
}
