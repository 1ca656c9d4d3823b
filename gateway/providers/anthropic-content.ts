import {
  isRecord,
  listOf,
  parseJson,
  present,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { parseArguments } from "../../core/exact-json.ts";
import { decodePercent } from "../../core/percent-decoding.ts";
import { imageOf } from "./chat-image.ts";

/** Receives the path of a part that Anthropic does not support. */
export type Lack = (path: string) => void;

const ADDRESS = /^https?:\/\//;
const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*),([^]*)$/;

/** The content of a message of OpenAI's shape as Anthropic's blocks. Other blocks pass unchanged. */
export function contentBlocks(
  content: unknown,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  if (typeof content === "string") {
    return textBlocks(content);
  }
  return listOf(content).flatMap((part, index) =>
    typeof part === "string"
      ? textBlocks(part)
      : isRecord(part)
        ? partBlocks(part, `${path}[${index}]`, lack)
        : reject(`${path}[${index}]`, lack),
  );
}

/** Anthropic rejects empty texts. */
function textBlocks(text: string, cacheControl?: unknown): JsonRecord[] {
  return text === ""
    ? []
    : [present({ type: "text", text, cache_control: cacheControl })];
}

function partBlocks(
  part: JsonRecord,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  const cacheControl = part["cache_control"];
  switch (part["type"]) {
    case "text": {
      const { text } = part;
      if (typeof text !== "string") {
        return [part];
      }
      // Anthropic's own fields, such as `citations`, are kept.
      return text === "" ? [] : [part];
    }
    case "refusal":
      return textBlocks(textOf(part["refusal"]), cacheControl);
    case "image_url": {
      const { url } = imageOf(part);
      return typeof url === "string"
        ? [present({ ...mediaBlock(url), cache_control: cacheControl })]
        : reject(`${path}.image_url`, lack);
    }
    case "file": {
      const file = fileBlock(recordOf(part["file"]));
      return file === null
        ? reject(`${path}.file`, lack)
        : [present({ ...file, cache_control: cacheControl })];
    }
    case "input_audio":
    case "audio":
    case "video_url":
      return reject(path, lack);
    default:
      return typeof part["type"] === "string" ? [part] : reject(path, lack);
  }
}

function reject(path: string, lack: Lack): readonly JsonRecord[] {
  lack(path);
  return [];
}

/** A data URL or an address as an image; a PDF as a document. */
function mediaBlock(url: string): JsonRecord {
  const data = DATA_URL.exec(url);
  if (data === null) {
    return { type: "image", source: { type: "url", url } };
  }
  const [, mediaType = "", , encoded = ""] = data;
  const source = { type: "base64", media_type: mediaType, data: encoded };
  return mediaType === "application/pdf"
    ? { type: "document", source }
    : { type: "image", source };
}

function fileBlock(file: JsonRecord): JsonRecord | null {
  const { filename: title, file_id: fileId, file_data: fileData } = file;
  // OpenRouter's callers give an address as `file_data`, LiteLLM's as `file_id`.
  const url = [fileId, fileData].find((one) => ADDRESS.test(textOf(one)));
  if (url !== undefined) {
    return present({ type: "document", source: { type: "url", url }, title });
  }
  if (typeof fileId === "string") {
    return present({
      type: "document",
      source: { type: "file", file_id: fileId },
      title,
    });
  }
  if (typeof fileData !== "string") {
    return null;
  }
  const data = DATA_URL.exec(fileData);
  const mediaType = data?.[1] ?? "application/pdf";
  const encoded = data?.[3] ?? fileData;
  if (mediaType.startsWith("image/")) {
    return mediaBlock(fileData);
  }
  if (mediaType.startsWith("text/")) {
    return present({
      type: "document",
      source: {
        type: "text",
        media_type: "text/plain",
        data: data?.[2]?.includes(";base64")
          ? Buffer.from(encoded, "base64").toString("utf8")
          : decodePercent(encoded),
      },
      title,
    });
  }
  return present({
    type: "document",
    source: { type: "base64", media_type: mediaType, data: encoded },
    title,
  });
}

/** The arguments of a tool call as the object that Anthropic requires; other values are wrapped in one. */
export function toolInput(written: unknown): JsonRecord {
  if (isRecord(written)) {
    return written;
  }
  if (typeof written !== "string" || written.trim() === "") {
    return {};
  }
  const parsed = parseJson(written, parseArguments);
  return isRecord(parsed) ? parsed : { arguments: written };
}

/** Ids of other providers may contain characters that Anthropic rejects; equal ids stay equal. */
export function toolUseId(id: unknown): string {
  const text = typeof id === "string" && id !== "" ? id : "call";
  return text.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
}
