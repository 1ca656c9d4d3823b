import { invalidParam } from "../http/errors.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { fieldOf } from "./contents-fields.ts";
import { thinkingIn } from "./responses-input.ts";

/** A conversation of Gemini's API as messages of chat. Throws {@link CallError} `invalid_request` naming the invalid part. */
export function messagesOfContents(contents: unknown): readonly JsonRecord[] {
  const calls = new ToolCalls();
  return recordsOf(contents).flatMap((content, index) => {
    const parts = partsOf(content, `contents[${index}].parts`);
    return content["role"] === "model"
      ? modelMessages(parts, calls)
      : userMessages(parts, calls);
  });
}

/** The text of a content that can have no other parts. */
export function textOfContent(content: unknown): string {
  return typeof content === "string"
    ? content
    : recordsOf(recordOf(content)["parts"])
        .map(({ text }) => textOf(text))
        .join("\n");
}

interface Part {
  readonly value: JsonRecord;
  /** For errors: `contents[0].parts[1]`. */
  readonly path: string;
}

function partsOf(content: JsonRecord, path: string): readonly Part[] {
  return listOf(content["parts"]).map((value, index) => {
    if (!isRecord(value)) {
      throw invalidParam(`${path}[${index}]`, "must be an object.");
    }
    return { value, path: `${path}[${index}]` };
  });
}

/** Pairs results with calls, whose ids are optional. */
class ToolCalls {
  #count = 0;
  /** Ids of calls without a result, by the name of the tool. */
  readonly #open = new Map<string, string[]>();

  add(name: string, id: string): string {
    this.#count++;
    const known = id === "" ? `call_${this.#count}` : id;
    this.#open.set(name, [...(this.#open.get(name) ?? []), known]);
    return known;
  }

  /** The id of the call that a result belongs to: its own, or that of the first call that waits for one. */
  take(name: string, id: string): string {
    const open = this.#open.get(name) ?? [];
    const taken = id === "" ? (open[0] ?? name) : id;
    this.#open.set(
      name,
      open.filter((other) => other !== taken),
    );
    return taken;
  }
}

function modelMessages(
  parts: readonly Part[],
  calls: ToolCalls,
): readonly JsonRecord[] {
  // A model gets its thoughts back by their signature only.
  const said = parts.filter(({ value }) => value["thought"] !== true);
  const text = said.map(({ value }) => textOf(value["text"])).join("");
  const called = said
    .map(({ value }) => recordOf(fieldOf(value, "functionCall")))
    .filter(({ name }) => name !== undefined)
    .map((call) => callOf(call, calls));
  const thinking = parts.flatMap(({ value }) =>
    thinkingOf(textOf(fieldOf(value, "thoughtSignature"))),
  );
  if (text === "" && called.length === 0) {
    return [];
  }
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...present({
        tool_calls: called.length === 0 ? null : called,
        thinking_blocks: thinking.length === 0 ? null : thinking,
      }),
    },
  ];
}

function callOf(call: JsonRecord, calls: ToolCalls): JsonRecord {
  const name = textOf(call["name"]);
  return {
    id: calls.add(name, textOf(call["id"])),
    type: "function",
    function: { name, arguments: JSON.stringify(call["args"] ?? {}) },
  };
}

/** Signatures are bytes, of which clients keep nothing but base64, in either alphabet. */
function thinkingOf(signature: string): readonly JsonRecord[] {
  return thinkingIn(Buffer.from(signature, "base64").toString("utf8"));
}

function userMessages(
  parts: readonly Part[],
  calls: ToolCalls,
): readonly JsonRecord[] {
  const results: JsonRecord[] = [];
  const content: JsonRecord[] = [];
  for (const part of parts) {
    const returned = fieldOf(part.value, "functionResponse");
    if (!isRecord(returned)) {
      content.push(contentOf(part));
      continue;
    }
    const name = textOf(returned["name"]);
    results.push({
      role: "tool",
      tool_call_id: calls.take(name, textOf(returned["id"])),
      content: resultText(recordOf(returned["response"])),
    });
    const path = `${part.path}.functionResponse.parts`;
    content.push(...partsOf(returned, path).map(contentOf));
  }
  const [first] = content;
  return first === undefined
    ? results
    : [
        ...results,
        {
          role: "user",
          content:
            content.length === 1 && first["type"] === "text"
              ? first["text"]
              : content,
        },
      ];
}

/** Tools answer with an object, whose `output` is the answer. */
function resultText(response: JsonRecord): string {
  const { output, ...rest } = response;
  return typeof output === "string" && Object.keys(rest).length === 0
    ? output
    : JSON.stringify(response);
}

function contentOf({ value, path }: Part): JsonRecord {
  if (typeof value["text"] === "string") {
    return { type: "text", text: value["text"] };
  }
  const inline = fieldOf(value, "inlineData");
  if (isRecord(inline)) {
    return dataOf(inline);
  }
  const file = recordOf(fieldOf(value, "fileData"));
  const url = textOf(fieldOf(file, "fileUri"));
  if (/^https?:/.test(url) && mediaType(file).startsWith("image/")) {
    return { type: "image_url", image_url: { url } };
  }
  throw invalidParam(
    path,
    "must have `text`, `inlineData`, `functionCall` or `functionResponse`, or as `fileData` the address of an image.",
  );
}

function dataOf(inline: JsonRecord): JsonRecord {
  const type = mediaType(inline);
  const data = textOf(inline["data"]);
  const url = `data:${type};base64,${data}`;
  const [kind] = type.split("/");
  switch (kind) {
    case "image":
      return { type: "image_url", image_url: { url } };
    case "audio": {
      const format = type.includes("wav") ? "wav" : "mp3";
      return { type: "input_audio", input_audio: { data, format } };
    }
    case "text":
      return {
        type: "text",
        text: Buffer.from(data, "base64").toString("utf8"),
      };
    default:
      return { type: "file", file: { filename: "document", file_data: url } };
  }
}

function mediaType(data: JsonRecord): string {
  return textOf(fieldOf(data, "mimeType"));
}
