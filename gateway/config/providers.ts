import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import type { ProviderFamily } from "./types.ts";

/** A provider named before the slash of `provider_params.model`. */
export interface KnownProvider {
  readonly family: ProviderFamily;
  /** null: `api_base` is required. */
  readonly apiBase: string | null;
  /** Read when `api_key` is not set and calls go to `apiBase`; null: the provider needs no key. */
  readonly keyVariable: string | null;
}

const openaiCompatible = (
  apiBase: string | null,
  keyVariable: string | null,
): KnownProvider => ({ family: "openai", apiBase, keyVariable });

const OLLAMA: KnownProvider = {
  family: "ollama",
  apiBase: "http://127.0.0.1:11434/v1",
  keyVariable: null,
};

/** By the name before the slash. Providers of the family `openai` use OpenAI's format at their own address. */
export const PROVIDERS: Readonly<Record<string, KnownProvider>> = {
  openai: openaiCompatible("https://api.openai.com/v1", "OPENAI_API_KEY"),
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

  mistral: openaiCompatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
  codestral: openaiCompatible(
    "https://codestral.mistral.ai/v1",
    "CODESTRAL_API_KEY",
  ),
  groq: openaiCompatible("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
  deepseek: openaiCompatible("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
  openrouter: openaiCompatible(
    "https://openrouter.ai/api/v1",
    "OPENROUTER_API_KEY",
  ),
  together_ai: openaiCompatible(
    "https://api.together.xyz/v1",
    "TOGETHERAI_API_KEY",
  ),
  fireworks_ai: openaiCompatible(
    "https://api.fireworks.ai/inference/v1",
    "FIREWORKS_AI_API_KEY",
  ),
  xai: openaiCompatible("https://api.x.ai/v1", "XAI_API_KEY"),
  perplexity: openaiCompatible(
    "https://api.perplexity.ai",
    "PERPLEXITYAI_API_KEY",
  ),
  cerebras: openaiCompatible("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
  deepinfra: openaiCompatible(
    "https://api.deepinfra.com/v1/openai",
    "DEEPINFRA_API_KEY",
  ),
  sambanova: openaiCompatible(
    "https://api.sambanova.ai/v1",
    "SAMBANOVA_API_KEY",
  ),
  nvidia_nim: openaiCompatible(
    "https://integrate.api.nvidia.com/v1",
    "NVIDIA_NIM_API_KEY",
  ),
  moonshot: openaiCompatible("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
  cohere: openaiCompatible(
    "https://api.cohere.ai/compatibility/v1",
    "COHERE_API_KEY",
  ),
  huggingface: openaiCompatible("https://router.huggingface.co/v1", "HF_TOKEN"),
  jina_ai: openaiCompatible("https://api.jina.ai/v1", "JINA_AI_API_KEY"),
  voyage: openaiCompatible("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),

  // Self-hosted runners and proxies: only the address matters.
  openai_like: openaiCompatible(null, null),
  custom_openai: openaiCompatible(null, null),
  "text-completion-openai": openaiCompatible(
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
  ),
  vllm: openaiCompatible(null, null),
  hosted_vllm: openaiCompatible(null, null),
  infinity: openaiCompatible(null, null),
  lm_studio: openaiCompatible("http://127.0.0.1:1234/v1", null),
  llamacpp: openaiCompatible("http://127.0.0.1:8080/v1", null),
  llamafile: openaiCompatible("http://127.0.0.1:8080/v1", null),
  litellm_proxy: openaiCompatible(null, "LITELLM_PROXY_API_KEY"),
};

/** Providers of LiteLLM whose wire formats are not supported. */
export const FOREIGN_PROVIDERS: ReadonlySet<string> = new Set([
  "a2a",
  "a2a_agent",
  "ai21",
  "ai21_chat",
  "anthropic_text",
  "assemblyai",
  "auto_router",
  "aws_polly",
  "aws_textract",
  "azure_ai",
  "azure_speech",
  "azure_text",
  "bedrock",
  "bedrock_mantle",
  "black_forest_labs",
  "clarifai",
  "cloudflare",
  "cohere_chat",
  "databricks",
  "databricks_agent",
  "deepgram",
  "elevenlabs",
  "fal_ai",
  "gigachat",
  "langflow",
  "langgraph",
  "manus",
  "nlp_cloud",
  "nvidia_riva",
  "oci",
  "petals",
  "predibase",
  "ragflow",
  "recraft",
  "reducto",
  "replicate",
  "runwayml",
  "sagemaker",
  "sagemaker_chat",
  "sagemaker_nova",
  "sap",
  "snowflake",
  "soniox",
  "stability",
  "topaz",
  "triton",
  "vertex_ai",
  "vertex_ai_beta",
  "watsonx",
  "watsonx_text",
]);

/** Further providers of LiteLLM, most of them with an OpenAI-compatible address, which `api_base` has to name here. */
export const OTHER_PROVIDERS: ReadonlySet<string> = new Set([
  "abliteration",
  "aiml",
  "amazon_nova",
  "apertis",
  "baseten",
  "bytez",
  "chatgpt",
  "chutes",
  "cometapi",
  "compactifai",
  "cortecs",
  "dashscope",
  "datarobot",
  "docker_model_runner",
  "edenai",
  "empower",
  "featherless_ai",
  "friendliai",
  "galadriel",
  "github",
  "github_copilot",
  "gradient_ai",
  "helicone",
  "heroku",
  "hyperbolic",
  "inception",
  "lambda_ai",
  "lemonade",
  "libertai",
  "maritalk",
  "meta_llama",
  "minimax",
  "modelscope",
  "morph",
  "nano-gpt",
  "nebius",
  "neosantara",
  "novita",
  "nscale",
  "oobabooga",
  "ovhcloud",
  "parasail",
  "poe",
  "publicai",
  "reka",
  "scaleway",
  "synthetic",
  "tencent",
  "text-completion-codestral",
  "v0",
  "vercel_ai_gateway",
  "volcengine",
  "wandb",
  "xiaomi_mimo",
  "xinference",
  "zai",
]);

/** The provider of a model written without one, if its name is unambiguous. */
export function guessProvider(model: string): string | null {
  if (
    /^(ft:)?(gpt-|o[1-9](-|$)|chatgpt-|text-embedding-|dall-e|whisper-|tts-|omni-moderation-)/.test(
      model,
    )
  ) {
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

/** The address to which an adapter appends its paths. */
export function normalizeApiBase(
  family: ProviderFamily,
  written: string,
): string {
  const base = withoutTrailingSlashes(written);
  switch (family) {
    case "anthropic":
      return base.replace(/\/v1(\/messages)?$/, "");
    case "azure":
      return base;
    case "openai":
    case "ollama":
    case "gemini":
      // Runners serve their OpenAI-compatible routes under /v1, added to a host and port without a path.
      return new URL(base).pathname === "/" ? `${base}/v1` : base;
  }
}
