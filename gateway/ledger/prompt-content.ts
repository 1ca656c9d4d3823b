import { isRecord, listOf, type JsonRecord } from "../../core/json.ts";

/** The input of a call: text whose tokens are counted, and tokens that are not text. */
interface PromptContent {
  readonly texts: readonly string[];
  /** Images, audio, files, and what the message format adds. */
  readonly tokens: number;
}

interface ImageTokens {
  readonly full: number;
  readonly low: number;
}

/** An image of full detail costs 765 to 1,600 tokens at the large providers; the upper end is taken. */
const IMAGE: ImageTokens = { full: 1_600, low: 85 };
/**
 * Models with a low price of tokens count more of them, so that an image costs as much as with others: the largest one.
 * https://platform.openai.com/docs/guides/images-vision#calculating-costs
 */
const IMAGES_OF_MODELS: readonly (readonly [RegExp, ImageTokens])[] = [
  [/gpt-4o-mini/, { full: 48_169, low: 2_833 }],
  [/gpt-4\.1-mini/, { full: 2_489, low: 85 }],
  [/gpt-4\.1-nano/, { full: 3_779, low: 85 }],
];
/** Base64 characters for each token: about 10 tokens a second of 32 kbit/s mp3, or of 24 kHz wav. Videos have fewer for their size. */
const MP3_CHARACTERS_PER_TOKEN = 500;
const WAV_CHARACTERS_PER_TOKEN = 6_400;
/** A page of a PDF is about 2,000 tokens and 50 kB. */
const FILE_CHARACTERS_PER_TOKEN = 30;
const MIN_FILE_TOKENS = 1_500;

/** Around each message, and around the answer's beginning (OpenAI's chat format). */
const MESSAGE_TOKENS = 3;
const ANSWER_START_TOKENS = 3;
const TOOL_TOKENS = 8;

/**
 * Collects the input of a chat, completions, messages or responses body to a model, by the provider's name of it; parts that it does
 * not know count as their JSON.
 */
export function promptContent(body: unknown, model: string): PromptContent {
  const found: Found = {
    texts: [],
    tokens: ANSWER_START_TOKENS,
    model,
  };
  if (!isRecord(body)) {
    return found;
  }
  for (const message of listOf(body["messages"])) {
    addMessage(found, message);
  }
  // Responses: a text, or a list of messages and of what tools did.
  if (typeof body["input"] === "string") {
    found.texts.push(body["input"]);
  } else {
    for (const item of listOf(body["input"])) {
      addMessage(found, item);
    }
  }
  addContent(found, body["prompt"]);
  addContent(found, body["system"]);
  addContent(found, body["instructions"]);
  for (const tool of [...listOf(body["tools"]), ...listOf(body["functions"])]) {
    found.tokens += TOOL_TOKENS;
    addJson(found, tool);
  }
  addJson(found, body["response_format"]);
  return found;
}

/** The tokens of {@link promptContent} that are audio in messages. */
export function audioContent(body: JsonRecord): number {
  let tokens = 0;
  for (const messages of [body["messages"], body["input"]]) {
    for (const message of listOf(messages)) {
      const content = isRecord(message) ? message["content"] : null;
      for (const part of listOf(content)) {
        if (isRecord(part) && part["type"] === "input_audio") {
          tokens += tokensOfAudio(part);
        }
      }
    }
  }
  return tokens;
}

interface Found {
  readonly texts: string[];
  tokens: number;
  readonly model: string;
}

function addMessage(found: Found, message: unknown): void {
  found.tokens += MESSAGE_TOKENS + 1;
  if (!isRecord(message)) {
    return addContent(found, message);
  }
  if (typeof message["name"] === "string") {
    found.texts.push(message["name"]);
  }
  addContent(found, message["content"]);
  addJson(found, message["tool_calls"]);
  addJson(found, message["function_call"]);
  // Items of a Responses input that are not messages.
  for (const key of ["arguments", "input", "output", "summary", "tools"]) {
    addContent(found, message[key]);
  }
  for (const key of ["refusal", "reasoning_content"]) {
    const text = message[key];
    if (typeof text === "string") {
      found.texts.push(text);
    }
  }
}

function addContent(found: Found, content: unknown): void {
  if (typeof content === "string") {
    found.texts.push(content);
  } else if (typeof content === "number") {
    found.tokens += 1;
  } else if (Array.isArray(content)) {
    for (const part of content) {
      addContent(found, part);
    }
  } else if (isRecord(content)) {
    addPart(found, content);
  }
}

function addPart(found: Found, part: JsonRecord): void {
  switch (part["type"]) {
    case "text":
    case "input_text":
    case "output_text":
    case "thinking":
    case "refusal":
      return addContent(
        found,
        part["text"] ?? part["thinking"] ?? part["refusal"],
      );
    case "image_url":
    case "image":
    case "input_image":
    case "computer_screenshot":
      found.tokens += tokensOfImage(part, found.model);
      return;
    case "input_audio":
      found.tokens += tokensOfAudio(part);
      return;
    case "file":
    case "input_file":
    case "document":
      return addFile(found, part, FILE_CHARACTERS_PER_TOKEN);
    case "video_url":
    case "input_video":
    case "audio_url":
      return addFile(found, part, MP3_CHARACTERS_PER_TOKEN);
    case "tool_result":
      found.tokens += MESSAGE_TOKENS;
      return addContent(found, part["content"]);
    default:
      return isFile(part)
        ? addFile(found, part, FILE_CHARACTERS_PER_TOKEN)
        : addJson(found, part);
  }
}

function addFile(
  found: Found,
  part: JsonRecord,
  charactersPerToken: number,
): void {
  found.tokens += Math.max(
    MIN_FILE_TOKENS,
    Math.ceil(longestText(part).length / charactersPerToken),
  );
}

/** Of a kind that is not known here: whether it holds a file, in base64. */
function isFile(part: JsonRecord): boolean {
  return longestText(part).startsWith("data:");
}

function tokensOfImage(part: JsonRecord, model: string): number {
  const own = IMAGES_OF_MODELS.find(([name]) => name.test(model));
  const { full, low } = own?.[1] ?? IMAGE;
  return detailOf(part) === "low" ? low : full;
}

function tokensOfAudio(part: JsonRecord): number {
  const audio = isRecord(part["input_audio"]) ? part["input_audio"] : {};
  const perToken =
    audio["format"] === "wav"
      ? WAV_CHARACTERS_PER_TOKEN
      : MP3_CHARACTERS_PER_TOKEN;
  return Math.ceil(lengthOf(audio["data"]) / perToken);
}

function detailOf(part: JsonRecord): unknown {
  const image = part["image_url"];
  return isRecord(image) ? image["detail"] : part["detail"];
}

/** The longest text inside, which is the file itself. */
function longestText(value: unknown): string {
  if (typeof value === "string") {
    return value;
  }
  const parts = isRecord(value) ? Object.values(value) : listOf(value);
  return parts
    .map(longestText)
    .reduce(
      (longest, text) => (text.length > longest.length ? text : longest),
      "",
    );
}

function addJson(found: Found, value: unknown): void {
  if (value !== undefined && value !== null) {
    found.texts.push(JSON.stringify(value));
  }
}

function lengthOf(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
