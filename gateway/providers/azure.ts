import type { PricedDeployment } from "../routing/catalog.ts";
import { hasResponses, openaiPath, openaiWire } from "./openai-wire.ts";
import type { Endpoint, ProviderWire } from "./wire.ts";

/** The last dated version that is not a preview. */
const API_VERSION = "2024-10-21";
/** The first dated version with the Responses API; versions compare as text. */
const FIRST_WITH_RESPONSES = "2025-03-01";

/** https://learn.microsoft.com/azure/ai-services/openai/reference */
const OPENAI_ONLY: ReadonlySet<Endpoint> = new Set([
  "moderations",
  "image_variations",
  "rerank",
]);

/**
 * Azure OpenAI: OpenAI's bodies at Azure's addresses. `apiBase` may be the resource
 * (`https://NAME.openai.azure.com`), its version-free API (`…/openai/v1`), or one deployment
 * (`…/openai/deployments/NAME`).
 */
export const azureWire: ProviderWire = {
  ...openaiWire,
  speaks: (endpoint, deployment) =>
    endpoint === "responses"
      ? isVersionFree(deployment) ||
        (versionOf(deployment) >= FIRST_WITH_RESPONSES &&
          !isOneDeployment(deployment)) ||
        hasResponses(deployment)
      : !OPENAI_ONLY.has(endpoint) && openaiWire.speaks(endpoint, deployment),
  path(endpoint, deployment) {
    if (isVersionFree(deployment)) {
      return openaiPath(endpoint);
    }
    const version = `?api-version=${encodeURIComponent(versionOf(deployment))}`;
    return `${placeOf(endpoint, deployment)}${openaiPath(endpoint)}${version}`;
  },
  headers: ({ apiKey }): Record<string, string> =>
    apiKey === null ? {} : { "api-key": apiKey.reveal() },
};

function placeOf(endpoint: Endpoint, deployment: PricedDeployment): string {
  if (isOneDeployment(deployment)) {
    return "";
  }
  const root = deployment.apiBase.endsWith("/openai") ? "" : "/openai";
  // The Responses API names the deployment only in its body.
  return endpoint === "responses"
    ? root
    : `${root}/deployments/${encodeURIComponent(deployment.model)}`;
}

function versionOf({ apiVersion }: PricedDeployment): string {
  return apiVersion ?? API_VERSION;
}

function isVersionFree({ apiBase }: PricedDeployment): boolean {
  return /\/openai\/v1$/.test(apiBase);
}

function isOneDeployment({ apiBase }: PricedDeployment): boolean {
  return /\/openai\/deployments\/[^/]+$/.test(apiBase);
}
