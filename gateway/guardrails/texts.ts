import { isRecord, parseRecord, type JsonRecord } from "../../core/json.ts";

/** What names or describes a part and is not read as text. */
const NOT_TEXT = new Set([
  "type",
  "role",
  "id",
  "call_id",
  "tool_call_id",
  "tool_use_id",
  "item_id",
  "status",
  "detail",
  "format",
  "media_type",
  "signature",
  "encrypted_content",
]);
/** Where images, sound and files are. */
const BINARY = new Set(["url", "image_url", "data", "file_data", "b64_json"]);
const BASE64 = /^[\w+/=-]{256,}$/;

/**
 * A copy of a JSON value with each text in it replaced by what `visit` returns, in a fixed order; the same value if nothing
 * changed. Names of fields, ids and images are not visited.
 */
export function mapTexts(
  value: unknown,
  visit: (text: string, path: string) => string,
  path = "",
  inArguments = false,
): unknown {
  if (typeof value === "string") {
    return visit(value, path);
  }
  if (Array.isArray(value)) {
    const mapped = value.map((item: unknown, at) =>
      mapTexts(item, visit, `${path}/${indexOf(item, at)}`, inArguments),
    );
    return mapped.every((item, at) => item === value[at]) ? value : mapped;
  }
  if (!isRecord(value)) {
    return value;
  }
  let changed: Record<string, unknown> | null = null;
  for (const [key, item] of Object.entries(value)) {
    if (!inArguments && isNoText(key, item)) {
      continue;
    }
    // The arguments of a tool call in Anthropic's shape: their names are the tool's.
    const areArguments = inArguments || (key === "input" && isRecord(item));
    const mapped = mapTexts(item, visit, `${path}/${key}`, areArguments);
    if (mapped !== item) {
      changed ??= { ...value };
      changed[key] = mapped;
    }
  }
  return changed ?? value;
}

/** Parts of streams name their place. */
function indexOf(item: unknown, at: number): number {
  const index = isRecord(item) ? item["index"] : undefined;
  return typeof index === "number" ? index : at;
}

function isNoText(key: string, value: unknown): boolean {
  if (typeof value !== "string") {
    return key === "cache_control";
  }
  return (
    NOT_TEXT.has(key) ||
    (BINARY.has(key) && (value.startsWith("data:") || BASE64.test(value)))
  );
}

/** Texts of a body or an answer, and how to put others in their place. */
export interface Texts {
  /** What was said: prompts and answers. */
  readonly content: readonly string[];
  /** What else a model reads: descriptions of tools, schemas, stop sequences. */
  readonly other: readonly string[];
}

/** Fields of bodies with what is said. */
const CONTENT = new Set([
  "messages",
  "system",
  "input",
  "instructions",
  "prompt",
  "suffix",
]);
/** Fields that no model reads. */
const NOT_READ = new Set([
  "model",
  "user",
  "metadata",
  "safety_identifier",
  "prompt_cache_key",
  "service_tier",
  "previous_response_id",
]);

/** A body by field: those of content, others, and what no model reads. */
function partsOf(body: JsonRecord): {
  readonly content: JsonRecord;
  readonly other: JsonRecord;
} {
  const entries = Object.entries(body).filter(([name]) => !NOT_READ.has(name));
  const of = (isContent: boolean) =>
    Object.fromEntries(
      entries.filter(([name]) => CONTENT.has(name) === isContent),
    );
  return { content: of(true), other: of(false) };
}

export function textsOfBody(body: JsonRecord): Texts {
  const { content, other } = partsOf(body);
  return { content: textsIn(content), other: textsIn(other) };
}

/** The body with other texts, in the order of {@link textsOfBody}. */
export function withTexts<Body extends JsonRecord>(
  body: Body,
  { content, other }: Texts,
): Body {
  const parts = partsOf(body);
  return {
    ...body,
    ...replaced(parts.content, content),
    ...replaced(parts.other, other),
  };
}

/** Whether a prompt is given as numbers of tokens, which cannot be checked. */
export function hasTokenNumbers(body: JsonRecord): boolean {
  return [body["input"], body["prompt"]].some(
    (prompt) =>
      Array.isArray(prompt) &&
      prompt.flat().some((item) => typeof item === "number"),
  );
}

/** Top-level fields of answers with what a model said, in the shapes of all routes. */
const ANSWER = ["choices", "content", "output", "output_text"];

export function textsOfAnswer(bytes: Buffer): readonly string[] {
  const answer = parseRecord(bytes.toString("utf8"));
  return answer === null ? [bytes.toString("utf8")] : textsIn(said(answer));
}

/** The answer with other texts, in the order of {@link textsOfAnswer}, and without the probabilities of the former ones. */
export function withAnswerTexts(
  bytes: Buffer,
  texts: readonly string[],
): Buffer {
  const answer = parseRecord(bytes.toString("utf8"));
  return Buffer.from(
    answer === null
      ? (texts[0] ?? "")
      : JSON.stringify({ ...answer, ...replaced(said(answer), texts) }),
  );
}

function said(answer: JsonRecord): JsonRecord {
  return Object.fromEntries(
    ANSWER.filter((name) => name in answer).map((name) => [
      name,
      withoutProbabilities(answer[name]),
    ]),
  );
}

/** `logprobs` repeats the text, token by token. */
export function withoutProbabilities(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(withoutProbabilities);
  }
  if (!isRecord(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === "logprobs"
        ? Array.isArray(item)
          ? []
          : null
        : withoutProbabilities(item),
    ]),
  );
}

export function textsIn(value: unknown): readonly string[] {
  const texts: string[] = [];
  mapTexts(value, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

export function replaced<Value extends JsonRecord>(
  value: Value,
  texts: readonly string[],
): Value {
  let at = 0;
  return mapTexts(value, (text) => texts[at++] ?? text) as Value;
}
