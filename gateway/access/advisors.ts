import type { Gateway } from "../gateway.ts";
import { recordsOf, type JsonRecord } from "../providers/json.ts";
import type { Caller } from "./callers.ts";
import { authorizeProviderModels } from "./models.ts";

/**
 * Anthropic's advisor tool asks another model with the key of the deployment that is called. Throws 403 naming one that the caller
 * may not use.
 */
export function authorizeAdvisors(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  body: Readonly<Record<string, unknown>>,
): void {
  const advisors = recordsOf(body["tools"]).flatMap(modelOfAdvisor);
  if (advisors.length > 0) {
    authorizeProviderModels(gateway, caller, advisors);
  }
}

function modelOfAdvisor({ type, model }: JsonRecord): readonly string[] {
  const isAdvisor = typeof type === "string" && type.startsWith("advisor_");
  return isAdvisor && typeof model === "string" ? [model] : [];
}
