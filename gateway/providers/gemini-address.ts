import type { PricedDeployment } from "../routing/catalog.ts";

/** Of the address for OpenAI's clients; without it, it is that of Gemini's own API. */
const FOR_OPENAI = /\/openai\/?$/;

/** The address of Gemini's own API beside the configured one; null: another provider, or a server that may not have it. */
export function ownAddress({
  provider,
  apiBase,
}: Pick<PricedDeployment, "provider" | "apiBase">): string | null {
  return provider === "gemini" && FOR_OPENAI.test(apiBase)
    ? apiBase.replace(FOR_OPENAI, "")
    : null;
}
