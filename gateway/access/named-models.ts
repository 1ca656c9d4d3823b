import type { Gateway } from "../gateway.ts";
import { listOf, recordsOf, type JsonRecord } from "../../core/json.ts";
import type { Caller } from "./callers.ts";
import { authorizeProviderModels } from "./models.ts";

/**
 * Models besides its own that a call names for the provider, which asks them with the key of the deployment that is called:
 * those of Anthropic's advisor and of OpenAI's image tool, and those that OpenRouter falls back to. Throws 403 naming one that the
 * caller may not use.
 * https://openrouter.ai/docs/features/model-routing
 */
export function authorizeNamedModels(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  body: Readonly<Record<string, unknown>>,
): void {
  const named = [
    ...recordsOf(body["tools"]).flatMap(modelOfTool),
    ...listOf(body["models"]).filter((model) => typeof model === "string"),
  ];
  if (named.length > 0) {
    authorizeProviderModels(gateway, caller, named);
  }
}

/** Tools that ask another model. */
const ASKING_TOOL = /^(advisor_|image_generation$)/;

function modelOfTool({ type, model }: JsonRecord): readonly string[] {
  const asks = typeof type === "string" && ASKING_TOOL.test(type);
  return asks && typeof model === "string" ? [model] : [];
}
