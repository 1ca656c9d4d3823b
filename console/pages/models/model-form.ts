import { z } from "zod";
import { withTyped, type Field } from "../field.ts";
import { MODELS_PATH } from "./model-address.ts";

export const NEW_PATH = `${MODELS_PATH}/new`;

const MODES = [
  "chat",
  "embedding",
  "completion",
  "responses",
  "image_generation",
  "audio_transcription",
  "audio_speech",
  "moderation",
  "rerank",
] as const;

/** An address typed into a form; one with a password would be shown again on pages. */
export const plainAddress = z
  .string()
  .trim()
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    "Address must be one such as http://192.168.1.10:11434.",
  )
  .refine(
    (text) => !hasCredentials(text),
    "Address must not contain a user or a password: enter an API key instead.",
  );

export function hasCredentials(text: string): boolean {
  if (!URL.canParse(text)) {
    // Something before an @ may be a password.
    return text.includes("@");
  }
  const { username, password } = new URL(text);
  return username !== "" || password !== "";
}

/** What the form for a new deployment sends. */
export const newModel = z.object({
  model_name: z.string("Alias is required.").trim(),
  model: z
    .string("Model is required.")
    .trim()
    .regex(
      /^[^/]+\/./,
      "Model must be PROVIDER/MODEL, such as openai/gpt-4o-mini.",
    ),
  api_base: plainAddress.optional(),
  api_key: z.string().trim().optional(),
  mode: z.enum(MODES).default("chat"),
  local: z.literal("true").optional(),
});

/** The body of POST /model/new. */
export function newModelBody({
  model_name,
  model,
  api_base,
  api_key,
  mode,
  local,
}: z.output<typeof newModel>) {
  return {
    model_name,
    provider_params: {
      model,
      ...(api_base === undefined ? {} : { api_base }),
      ...(api_key === undefined ? {} : { api_key }),
      ...(local === undefined ? {} : { local: true }),
    },
    model_info: { mode },
  };
}

/** The field of the form that a parameter of the gateway is from. */
export function fieldNamed(param: string): string | undefined {
  const name = param.split(".").at(-1) ?? "";
  return Object.hasOwn(newModel.shape, name) ? name : undefined;
}

export function newModelFields(
  typed: Readonly<Record<string, string | readonly string[]>>,
  mistakes: Readonly<Record<string, string>>,
): readonly Field[] {
  const base = [typed["api_base"] ?? ""].flat().at(-1) ?? "";
  // Pages contain no secrets, also where they were typed into the wrong field.
  const shown = hasCredentials(base) ? { ...typed, api_base: "" } : typed;
  return withTyped(FIELDS, { mode: "chat", ...shown, api_key: "" }, mistakes);
}

const FIELDS: readonly Field[] = [
  {
    name: "model_name",
    label: "Alias",
    note: "The name that clients call. A second deployment of an alias shares its calls.",
    kind: "text",
    needed: true,
  },
  {
    name: "model",
    label: "Model",
    note: "PROVIDER/MODEL, such as anthropic/claude-sonnet-4-5 or ollama/llama3.2. Any OpenAI-compatible server: openai/MODEL with its address.",
    kind: "text",
    needed: true,
  },
  {
    name: "api_base",
    label: "Address",
    note: "Such as http://192.168.1.10:11434. Leave empty for the provider's own.",
    kind: "text",
  },
  {
    name: "api_key",
    label: "API key",
    note: "Stored encrypted and never shown. Leave empty for the provider's key that is stored or set already.",
    kind: "secret",
  },
  {
    name: "mode",
    label: "Kind of calls",
    kind: "choice",
    values: MODES.map((mode) => [mode, mode.replaceAll("_", " ")] as const),
  },
  {
    name: "local",
    label: "Local runner: its calls cost nothing",
    kind: "tick",
  },
];
