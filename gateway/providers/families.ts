import type { ProviderFamily } from "../config/types.ts";
import { anthropicWire } from "./anthropic.ts";
import { azureWire } from "./azure.ts";
import { geminiWire } from "./gemini.ts";
import { openaiWire } from "./openai-wire.ts";
import type { ProviderWire } from "./wire.ts";

/** The wire format of a deployment's provider. */
export function wireOf(family: ProviderFamily): ProviderWire {
  switch (family) {
    case "openai":
    case "ollama":
      return openaiWire;
    case "azure":
      return azureWire;
    case "anthropic":
      return anthropicWire;
    case "gemini":
      return geminiWire;
  }
}
