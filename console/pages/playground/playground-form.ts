import { readTools, type Tool } from "./tools.ts";

/** An image in the form of a data URL. */
interface Image {
  readonly name: string;
  readonly url: string;
}

/** What the models are asked. */
export interface Prompt {
  readonly system: string;
  readonly text: string;
  readonly images: readonly Image[];
  readonly tools: readonly Tool[];
}

/** The texts of the form, without the key: no page contains it. */
export interface Typed {
  /** One for each field, empty where none was typed. */
  readonly models: readonly string[];
  readonly system: string;
  readonly prompt: string;
  readonly tools: string;
}

export type Mistakes = Readonly<
  Partial<Record<"key" | "model" | "prompt" | "images" | "tools", string>>
>;

export interface PlaygroundForm {
  readonly typed: Typed;
  /** null: none was typed. */
  readonly key: string | null;
  /** Each once. */
  readonly models: readonly string[];
  readonly prompt: Prompt;
  /** By field; without one the form can be sent. */
  readonly mistakes: Mistakes;
}

export const MAX_MODELS = 4;

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** Reads the form; what is missing or wrong is among the mistakes. */
export async function readPlaygroundForm(
  form: FormData,
): Promise<PlaygroundForm> {
  const typed: Typed = {
    models: form.getAll("model").map(textOf).slice(0, MAX_MODELS),
    system: textIn(form, "system"),
    prompt: textIn(form, "prompt"),
    tools: textIn(form, "tools"),
  };
  const key = textIn(form, "key").trim();
  const models = [...new Set(typed.models)].filter((model) => model !== "");
  const files = form
    .getAll("images")
    // Browsers send an empty file where none is chosen.
    .filter((file) => file instanceof File && file.size > 0) as File[];
  const foreign = files.find(({ type }) => !IMAGE_TYPES.includes(type));
  const tools = readTools(typed.tools);
  const isEmpty = typed.prompt.trim() === "" && files.length === 0;
  return {
    typed,
    key: key === "" ? null : key,
    models,
    prompt: {
      system: typed.system,
      text: typed.prompt,
      images:
        foreign === undefined ? await Promise.all(files.map(imageOf)) : [],
      tools: tools.kind === "read" ? tools.tools : [],
    },
    mistakes: {
      // A header with another character could not be sent.
      ...(/^[\x21-\x7e]*$/.test(key)
        ? {}
        : { key: "Key has characters that no key has: paste it again." }),
      ...(models.length === 0 ? { model: "Model is required." } : {}),
      ...(isEmpty ? { prompt: "Prompt is required." } : {}),
      ...(foreign === undefined
        ? {}
        : {
            images: `Images must be PNG, JPEG, WebP or GIF files: ${foreign.name} is not.`,
          }),
      ...(tools.kind === "mistake" ? { tools: tools.mistake } : {}),
    },
  };
}

function textIn(form: FormData, name: string): string {
  return textOf(form.get(name));
}

/** Forms send line feeds as CRLF. */
function textOf(value: File | string | null): string {
  return typeof value === "string" ? value.replaceAll("\r\n", "\n").trim() : "";
}

async function imageOf(file: File): Promise<Image> {
  const bytes = Buffer.from(await file.arrayBuffer());
  return {
    name: file.name,
    url: `data:${file.type};base64,${bytes.toString("base64")}`,
  };
}

/** The body of POST /v1/chat/completions that asks a model. */
export function chatBody(
  model: string,
  { system, text, images, tools }: Prompt,
): Readonly<Record<string, unknown>> {
  const parts = [
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...images.map(({ url }) => ({ type: "image_url", image_url: { url } })),
  ];
  return {
    model,
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      { role: "user", content: images.length === 0 ? text : parts },
    ],
    ...(tools.length === 0 ? {} : { tools }),
  };
}
