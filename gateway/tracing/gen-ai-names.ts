/** Names of OpenTelemetry's GenAI conventions for the gateway's own; an unlisted one is kept. */

const OPERATIONS: Readonly<Record<string, string>> = {
  acompletion: "chat",
  anthropic_messages: "chat",
  aresponses: "chat",
  atext_completion: "text_completion",
  aembedding: "embeddings",
  amoderation: "moderation",
  aimage_generation: "image_generation",
  aimage_edit: "image_edit",
  aimage_variation: "image_variation",
  arerank: "rerank",
  aspeech: "speech",
  atranscription: "transcription",
  atranslation: "translation",
};

const PROVIDERS: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  mistral: "mistral_ai",
  vertex_ai: "gcp.vertex_ai",
  xai: "x_ai",
};

/** `gen_ai.operation.name` of a call type. */
export function operationOf(callType: string): string {
  return OPERATIONS[callType] ?? callType;
}

/** `gen_ai.provider.name` of a provider, as written before the slash of `model`. */
export function providerOf(providerName: string): string {
  return Object.hasOwn(PROVIDERS, providerName)
    ? (PROVIDERS[providerName] ?? providerName)
    : providerName;
}
