import type { Gateway } from "../gateway.ts";
import { recordsOf } from "../providers/json.ts";
import type { Caller } from "./callers.ts";
import { authorizeProviderModel } from "./models.ts";

/**
 * Anthropic's advisor tool asks another model with the key of the deployment that is called. Throws 403 naming one that the caller
 * may not use.
 */
export function authorizeAdvisors(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  body: Readonly<Record<string, unknown>>,
): void {
  for (const { type, model } of recordsOf(body["tools"])) {
    if (
      typeof type === "string" &&
      type.startsWith("advisor_") &&
      typeof model === "string"
    ) {
      authorizeProviderModel(gateway, caller, model);
    }
  }
}
