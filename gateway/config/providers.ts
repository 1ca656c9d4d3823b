import type { ProviderFamily } from "./types.ts";

/** What is known about a provider that is written before the slash of `provider_params.model`. */
export interface KnownProvider {
  readonly family: ProviderFamily;
  /** null: `api_base` must be given. */
  readonly apiBase: string | null;
  /** Read when `api_key` is not given and calls go to `apiBase`; null: the provider needs no key. */
  readonly keyVariable: string | null;
}

const openaiStyle = (
  apiBase: string | null,
  keyVariable: string | null,
): KnownProvider => ({ family: "openai", apiBase, keyVariable });

const OLLAMA: KnownProvider = {
  family: "ollama",
  apiBase: "http://127.0.0.1:11434/v1",
  keyVariable: null,
};

/** By the name before the slash. Everything of the family `openai` speaks OpenAI's format at its own address. */
export const PROVIDERS: Readonly<Record<string, KnownProvider>> = {
  openai: openaiStyle("https://api.openai.com/v1", "OPENAI_API_KEY"),
  anthropic: {
    family: "anthropic",
    apiBase: "https://api.anthropic.com",
    keyVariable: "ANTHROPIC_API_KEY",
  },
  gemini: {
    family: "gemini",
    apiBase: "https://generativelanguage.googleapis.com/v1beta/openai",
    keyVariable: "GEMINI_API_KEY",
  },
  azure: { family: "azure", apiBase: null, keyVariable: "AZURE_API_KEY" },
  ollama: OLLAMA,
  ollama_chat: OLLAMA,

  mistral: openaiStyle("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
  codestral: openaiStyle(
    "https://codestral.mistral.ai/v1",
    "CODESTRAL_API_KEY",
  ),
  groq: openaiStyle("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
  deepseek: openaiStyle("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
  openrouter: openaiStyle("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
  together_ai: openaiStyle("https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
  fireworks_ai: openaiStyle(
    "https://api.fireworks.ai/inference/v1",
    "FIREWORKS_AI_API_KEY",
  ),
  xai: openaiStyle("https://api.x.ai/v1", "XAI_API_KEY"),
  perplexity: openaiStyle("https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
  cerebras: openaiStyle("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
  deepinfra: openaiStyle(
    "https://api.deepinfra.com/v1/openai",
    "DEEPINFRA_API_KEY",
  ),
  sambanova: openaiStyle("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
  nvidia_nim: openaiStyle(
    "https://integrate.api.nvidia.com/v1",
    "NVIDIA_NIM_API_KEY",
  ),
  moonshot: openaiStyle("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
  cohere: openaiStyle(
    "https://api.cohere.ai/compatibility/v1",
    "COHERE_API_KEY",
  ),
  huggingface: openaiStyle("https://router.huggingface.co/v1", "HF_TOKEN"),

  // Runners and proxies of one's own: only the address matters.
  openai_like: openaiStyle(null, null),
  custom_openai: openaiStyle(null, null),
  "text-completion-openai": openaiStyle(
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
  ),
  vllm: openaiStyle(null, null),
  hosted_vllm: openaiStyle(null, null),
  lm_studio: openaiStyle("http://127.0.0.1:1234/v1", null),
  llamacpp: openaiStyle("http://127.0.0.1:8080/v1", null),
  llamafile: openaiStyle("http://127.0.0.1:8080/v1", null),
  litellm_proxy: openaiStyle(null, "LITELLM_PROXY_API_KEY"),
};

/** Providers that LiteLLM's files name and whose wire formats are not spoken here. */
export const FOREIGN_PROVIDERS: ReadonlySet<string> = new Set([
  "ai21",
  "azure_ai",
  "bedrock",
  "clarifai",
  "cloudflare",
  "cohere_chat",
  "databricks",
  "petals",
  "predibase",
  "replicate",
  "sagemaker",
  "sagemaker_chat",
  "triton",
  "vertex_ai",
  "vertex_ai_beta",
  "voyage",
  "watsonx",
]);

/** The provider of a model written without one, where its name leaves no doubt. */
export function guessProvider(model: string): string | null {
  if (/^(gpt-|o[1-9](-|$)|chatgpt-|text-embedding-|dall-e)/.test(model)) {
    return "openai";
  }
  if (model.startsWith("claude-")) {
    return "anthropic";
  }
  if (model.startsWith("gemini-")) {
    return "gemini";
  }
  return null;
}

/** The address that an adapter appends its paths to. */
export function normalizeApiBase(
  family: ProviderFamily,
  written: string,
): string {
  const base = written.replace(/\/+$/, "");
  switch (family) {
    case "anthropic":
      return base.replace(/\/v1(\/messages)?$/, "");
    case "azure":
      return base;
    case "openai":
    case "ollama":
    case "gemini":
      // Runners serve their OpenAI-style routes under /v1; a bare host and port means that.
      return new URL(base).pathname === "/" ? `${base}/v1` : base;
  }
}
