import { unknownGuardrail } from "../guardrails/select.ts";
import type { Admin } from "./admin-route.ts";

/** Throws 400 for names that are no guardrails: calls that require one would all be rejected. */
export function rejectUnknownGuardrails(
  { gateway }: Pick<Admin, "gateway">,
  names: unknown,
  field = "guardrails",
): void {
  const known = gateway.config.guardrails;
  for (const name of Array.isArray(names) ? (names as unknown[]) : []) {
    if (!known.some((one) => one.name === name)) {
      throw unknownGuardrail(known, String(name), field);
    }
  }
}
