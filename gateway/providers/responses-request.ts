import { PROVIDERS } from "../config/providers.ts";
import { isChatOnly, reasons } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isRecord, listOf, textOf, type JsonRecord } from "../../core/json.ts";
import { readableReasoning } from "./reasoning-origin.ts";

const ENCRYPTED = "reasoning.encrypted_content";

/**
 * A call of the Responses API as a provider gets it. The provider stores nothing, since the gateway does, for the caller's
 * tenant alone: so reasoning must come back encrypted, and items without it could not be found.
 */
export function responsesRequest(
  body: JsonRecord,
  deployment: PricedDeployment,
): JsonRecord {
  const encrypts = encryptsReasoning(deployment);
  const included = listOf(body["include"]);
  return {
    ...body,
    ...(Array.isArray(body["input"])
      ? { input: readable(body["input"], deployment.id, encrypts) }
      : {}),
    ...(encrypts && !included.includes(ENCRYPTED)
      ? { include: [...included, ENCRYPTED] }
      : {}),
    store: false,
  };
}

/** OpenAI itself, or Azure: other servers have the same API only in part. */
export function isOpenAi(deployment: PricedDeployment): boolean {
  const { provider, providerName, apiBase } = deployment;
  return (
    provider === "azure" ||
    (providerName === "openai" && apiBase === PROVIDERS["openai"]?.apiBase)
  );
}

/** Other servers reject the value, and so does OpenAI for models that do not reason. */
function encryptsReasoning(deployment: PricedDeployment): boolean {
  return !isChatOnly(deployment) && isOpenAi(deployment) && reasons(deployment);
}

/** The same list if nothing changes. */
function readable(
  input: readonly unknown[],
  deploymentId: string,
  encrypts: boolean,
): readonly unknown[] {
  if (!input.some(isReasoning)) {
    return input;
  }
  return input.flatMap((item) => {
    if (!isReasoning(item)) {
      return [item];
    }
    const readableItem = readableReasoning(item, deploymentId);
    const isFound =
      textOf(readableItem["encrypted_content"]) !== "" ||
      (!encrypts && listOf(readableItem["content"]).length > 0);
    return isFound ? [readableItem] : [];
  });
}

function isReasoning(item: unknown): item is JsonRecord {
  return isRecord(item) && item["type"] === "reasoning";
}
