import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { summaryMessage } from "../responses/compaction.ts";
import { functionName } from "./function-name.ts";

type Lack = (path: string) => void;

/** Anthropic's turns as OpenAI's messages: tool results become separate messages. `takesFiles`: PDF documents are supported. */
export function chatMessages(
  messages: readonly JsonRecord[],
  lack: Lack,
  takesFiles: boolean,
): readonly JsonRecord[] {
  const lastOfUser = messages.findLastIndex(({ role }) => role === "user");
  return messages.flatMap((message, index) => {
    const path = `messages[${index}].content`;
    const blocks = blocksOf(message["content"], path, lack);
    switch (message["role"]) {
      case "user":
        return userMessages(blocks, path, lack, takesFiles);
      case "assistant":
        return assistantMessages(blocks);
      case "system":
        return message["clear_at"] === "next_user_message" && index < lastOfUser
          ? []
          : systemMessage(blocks);
      default:
        lack(`messages[${index}].role`);
        return [];
    }
  });
}

function blocksOf(
  content: unknown,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  if (typeof content === "string") {
    return [{ type: "text", text: content }];
  }
  return listOf(content).flatMap((block, index) => {
    if (isRecord(block)) {
      return [block];
    }
    lack(`${path}[${index}]`);
    return [];
  });
}

/** Without text it only changes what tools are offered. */
function systemMessage(blocks: readonly JsonRecord[]): readonly JsonRecord[] {
  const content = textIn(blocks, "\n");
  return content === "" ? [] : [{ role: "system", content }];
}

function userMessages(
  blocks: readonly JsonRecord[],
  path: string,
  lack: Lack,
  takesFiles: boolean,
): readonly JsonRecord[] {
  const results: JsonRecord[] = [];
  const parts: JsonRecord[] = [];
  blocks.forEach((block, index) => {
    const at = `${path}[${index}]`;
    if (block["type"] !== "tool_result") {
      parts.push(...partsOf(block, at, lack, takesFiles));
      return;
    }
    const inner = blocksOf(block["content"], `${at}.content`, lack).flatMap(
      (one) => partsOf(one, at, lack, takesFiles),
    );
    results.push({
      role: "tool",
      tool_call_id: textOf(block["tool_use_id"]),
      content: resultText(textIn(inner, "\n"), block["is_error"] === true),
    });
    // A tool message supports text only: its images follow in the user message.
    parts.push(...inner.filter((part) => part["type"] !== "text"));
  });
  const only = parts.length === 1 ? parts[0] : undefined;
  return [
    ...results,
    ...(parts.length === 0
      ? []
      : [
          {
            role: "user",
            content: only?.["type"] === "text" ? only["text"] : parts,
          },
        ]),
  ];
}

/** A tool message has no mark for a failure: the model reads it in the text. */
function resultText(text: string, isError: boolean): string {
  return isError && !/^error\b/i.test(text) ? `Error: ${text}`.trimEnd() : text;
}

/** A summary that Anthropic wrote is all that is left of earlier messages: other models read it as the user's. */
function assistantMessages(
  blocks: readonly JsonRecord[],
): readonly JsonRecord[] {
  const isSummary = (block: JsonRecord) =>
    block["type"] === "compaction" && typeof block["content"] === "string";
  const others = blocks.filter((block) => !isSummary(block));
  return [
    ...blocks
      .filter(isSummary)
      .map((block) => summaryMessage(textOf(block["content"]))),
    ...(others.length === 0 && blocks.length > 0
      ? []
      : [assistantMessage(others)]),
  ];
}

function assistantMessage(blocks: readonly JsonRecord[]): JsonRecord {
  const thinking = blocks.filter(
    ({ type }) => type === "thinking" || type === "redacted_thinking",
  );
  const others = blocks.filter(
    ({ type }) =>
      !["text", "thinking", "redacted_thinking", "tool_use"].includes(
        textOf(type),
      ),
  );
  const calls = blocks
    .filter(({ type }) => type === "tool_use")
    .map((block) => ({
      id: textOf(block["id"]),
      type: "function",
      function: {
        name: functionName(textOf(block["name"])),
        arguments: JSON.stringify(block["input"] ?? {}),
      },
    }));
  const text = textIn(blocks);
  const reasoning = thinking.map((block) => textOf(block["thinking"])).join("");
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...present({
      reasoning_content: reasoning === "" ? null : reasoning,
      thinking_blocks: thinking.length === 0 ? null : thinking,
      provider_blocks: others.length === 0 ? null : others,
      tool_calls: calls.length === 0 ? null : calls,
    }),
  };
}

/** `between`: what separates blocks that are not parts of one text. */
function textIn(blocks: readonly JsonRecord[], between = ""): string {
  return blocks
    .filter(({ type }) => type === "text")
    .map(({ text }) => textOf(text))
    .join(between);
}

function partsOf(
  block: JsonRecord,
  path: string,
  lack: Lack,
  takesFiles: boolean,
): readonly JsonRecord[] {
  const source = recordOf(block["source"]);
  const part = (): JsonRecord | null => {
    switch (block["type"]) {
      case "text":
        return { type: "text", text: textOf(block["text"]) };
      case "image":
        return imagePart(source);
      case "document":
        return documentPart(source, block["title"]);
      case "search_result":
        return { type: "text", text: searchResultText(block) };
      case "tool_reference":
        return {
          type: "text",
          text: `The tool ${textOf(block["tool_name"])} is loaded.`,
        };
      default:
        return null;
    }
  };
  const found = part();
  if (recordOf(block["citations"])["enabled"] === true) {
    lack(`${path}.citations`);
  }
  if (found !== null && (found["type"] !== "file" || takesFiles)) {
    return [found];
  }
  lack(
    `${path}${typeof block["type"] === "string" ? ` (${block["type"]})` : ""}`,
  );
  return [];
}

function imagePart(source: JsonRecord): JsonRecord | null {
  const url = source["type"] === "url" ? source["url"] : dataUrl(source);
  return typeof url === "string"
    ? { type: "image_url", image_url: { url } }
    : null;
}

function documentPart(source: JsonRecord, title: unknown): JsonRecord | null {
  switch (source["type"]) {
    case "text":
      return { type: "text", text: textOf(source["data"]) };
    case "content":
      return {
        type: "text",
        text:
          typeof source["content"] === "string"
            ? source["content"]
            : textIn(recordsOf(source["content"]), "\n"),
      };
    case "base64": {
      const fileData = dataUrl(source);
      return fileData === null
        ? null
        : {
            type: "file",
            file: {
              filename: typeof title === "string" ? title : "document.pdf",
              file_data: fileData,
            },
          };
    }
    default:
      return null;
  }
}

function searchResultText(block: JsonRecord): string {
  const heading = [block["title"], block["source"]]
    .map(textOf)
    .filter((line) => line !== "");
  return [...heading, textIn(recordsOf(block["content"]), "\n")].join("\n");
}

function dataUrl(source: JsonRecord): string | null {
  const { type, media_type: mediaType, data } = source;
  return type === "base64" &&
    typeof mediaType === "string" &&
    typeof data === "string"
    ? `data:${mediaType};base64,${data}`
    : null;
}
