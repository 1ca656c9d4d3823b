import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { parseArguments } from "../../core/exact-json.ts";
import {
  isRecord,
  listOf,
  parseJson,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { chatRequest } from "./gemini.ts";
import { signatureOf } from "./gemini-signature.ts";
import { googleBody, thinkingConfig } from "./gemini-thinking.ts";
import { googleTools, safetySettings } from "./gemini-tools.ts";

/** A chat as a call of Gemini's own `generateContent`. https://ai.google.dev/api/generate-content */
export function generateRequest(
  body: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): JsonRecord {
  const chat = chatRequest(body, deployment, stream);
  const google = googleBody(chat);
  // The history of a chat for OpenAI's clients has no images of earlier answers.
  const given = listOf(body["messages"]);
  const { system, contents } = conversationOf(
    listOf(chat["messages"]).map((message, at) => ({
      ...recordOf(message),
      images: recordOf(given[at])["images"],
    })),
  );
  const functions = recordsOf(chat["tools"]).map(declarationOf);
  const tools = [
    ...(functions.length === 0 ? [] : [{ functionDeclarations: functions }]),
    ...googleTools(body),
  ];
  return present({
    contents,
    systemInstruction: system.length === 0 ? null : { parts: system },
    tools: tools.length === 0 ? null : tools,
    toolConfig:
      functions.length === 0 ? null : toolConfigOf(chat["tool_choice"]),
    safetySettings: safetySettings(body, deployment),
    cachedContent: google["cached_content"],
    generationConfig: generationOf(
      { ...chat, top_k: body["top_k"] ?? deployment.defaults["top_k"] },
      google,
      deployment,
    ),
  });
}

interface Conversation {
  readonly system: readonly JsonRecord[];
  readonly contents: readonly JsonRecord[];
}

/** Instructions are separate, whatever their place; turns of one role after another are one. */
function conversationOf(messages: readonly JsonRecord[]): Conversation {
  const system: JsonRecord[] = [];
  const turns: { role: "user" | "model"; parts: JsonRecord[] }[] = [];
  /** The tools that were called, by the id of their call. */
  const called = new Map<string, string>();
  const add = (role: "user" | "model", parts: readonly JsonRecord[]) => {
    const last = turns.at(-1);
    if (parts.length === 0) {
      return;
    }
    if (last?.role === role) {
      last.parts.push(...parts);
    } else {
      turns.push({ role, parts: [...parts] });
    }
  };
  for (const message of messages) {
    switch (message["role"]) {
      case "system":
      case "developer":
        system.push(...partsOf(message["content"]));
        break;
      case "assistant":
        for (const call of recordsOf(message["tool_calls"])) {
          const { name } = recordOf(call["function"]);
          called.set(textOf(call["id"]), textOf(name));
        }
        add("model", [
          ...partsOf(message["content"]),
          ...partsOf(message["images"]),
          ...recordsOf(message["tool_calls"]).map(callPart),
        ]);
        break;
      case "tool":
        add("user", resultParts(message, called));
        break;
      default:
        add("user", partsOf(message["content"]));
    }
  }
  return { system, contents: turns };
}

function callPart(call: JsonRecord): JsonRecord {
  const { name, arguments: args } = recordOf(call["function"]);
  const signature = signatureOf(call);
  return {
    functionCall: {
      name,
      args: recordOf(parseJson(textOf(args), parseArguments)),
    },
    ...(signature === "" ? {} : { thoughtSignature: signature }),
  };
}

/** A result is an object; what it contains besides text follows it. */
function resultParts(
  { content, tool_call_id: id, name }: JsonRecord,
  called: ReadonlyMap<string, string>,
): readonly JsonRecord[] {
  const parts = partsOf(content);
  const output = parts.map(({ text }) => textOf(text)).join("");
  return [
    {
      functionResponse: {
        name: called.get(textOf(id)) ?? (textOf(name) || textOf(id)),
        response: resultOf(output),
      },
    },
    ...parts.filter(({ text }) => text === undefined),
  ];
}

function resultOf(output: string): JsonRecord {
  const parsed = parseJson(output, parseArguments);
  return isRecord(parsed) ? parsed : { output };
}

function partsOf(content: unknown): readonly JsonRecord[] {
  return typeof content === "string"
    ? content === ""
      ? []
      : [{ text: content }]
    : recordsOf(content).flatMap(partOf);
}

function partOf(part: JsonRecord): readonly JsonRecord[] {
  switch (part["type"]) {
    case "image_url": {
      const image = part["image_url"];
      return fileOf(
        textOf(isRecord(image) ? image["url"] : image),
        "image/jpeg",
      );
    }
    case "video_url":
      return fileOf(textOf(recordOf(part["video_url"])["url"]), "video/mp4");
    case "input_audio": {
      const { data, format } = recordOf(part["input_audio"]);
      const mimeType = `audio/${textOf(format) || "wav"}`;
      return [{ inlineData: { mimeType, data } }];
    }
    case "file": {
      const { file_data: data, file_id: id } = recordOf(part["file"]);
      return fileOf(textOf(data) || textOf(id), "application/pdf");
    }
    default: {
      const text = textOf(part["text"]) || textOf(part["refusal"]);
      return text === "" ? [] : [{ text }];
    }
  }
}

/** A data URL, or an address; `usual`: the type that an address has without an ending which says so. */
function fileOf(url: string, usual: string): readonly JsonRecord[] {
  const [, type, data] = /^data:([^;,]*)[^,]*;base64,(.*)$/s.exec(url) ?? [];
  if (data !== undefined) {
    return [{ inlineData: { mimeType: type || usual, data } }];
  }
  const [, ending = ""] = /\.(\w+)(?:[?#]|$)/.exec(url) ?? [];
  const mimeType = TYPES.get(ending.toLowerCase()) ?? usual;
  return url === "" ? [] : [{ fileData: { mimeType, fileUri: url } }];
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["pdf", "application/pdf"],
  ["mp4", "video/mp4"],
  ["webm", "video/webm"],
  ["mov", "video/quicktime"],
]);

function declarationOf({ function: called }: JsonRecord): JsonRecord {
  const { name, description, parameters } = recordOf(called);
  return present({ name, description, parametersJsonSchema: parameters });
}

function toolConfigOf(choice: unknown): JsonRecord | null {
  const { type, function: called, allowed_tools: allowed } = recordOf(choice);
  const calling = (mode: string, names?: readonly unknown[]) => ({
    functionCallingConfig: present({ mode, allowedFunctionNames: names }),
  });
  if (type === "function") {
    return calling("ANY", [recordOf(called)["name"]]);
  }
  if (type === "allowed_tools") {
    const { mode, tools } = recordOf(allowed);
    const names = recordsOf(tools).map(
      (tool) => recordOf(tool["function"])["name"],
    );
    return calling(mode === "required" ? "ANY" : "VALIDATED", names);
  }
  switch (choice) {
    case "required":
      return calling("ANY");
    case "none":
      return calling("NONE");
    default:
      return null;
  }
}

function generationOf(
  chat: JsonRecord,
  google: JsonRecord,
  deployment: PricedDeployment,
): JsonRecord | null {
  const { type, json_schema: schema } = recordOf(chat["response_format"]);
  const modalities = listOf(chat["modalities"]).map(textOf);
  const stop = [chat["stop"]].flat().filter((one) => textOf(one) !== "");
  const config = present({
    candidateCount: chat["n"],
    responseModalities: modalities.includes("image")
      ? modalities.map((modality) => modality.toUpperCase())
      : null,
    maxOutputTokens: chat["max_completion_tokens"] ?? chat["max_tokens"],
    temperature: chat["temperature"],
    topP: chat["top_p"],
    topK: chat["top_k"],
    seed: chat["seed"],
    presencePenalty: chat["presence_penalty"],
    frequencyPenalty: chat["frequency_penalty"],
    stopSequences: stop.length === 0 ? null : stop,
    responseMimeType:
      type === "json_object" || type === "json_schema"
        ? "application/json"
        : null,
    responseJsonSchema: recordOf(schema)["schema"],
    thinkingConfig:
      google["thinking_config"] ??
      thinkingConfig(textOf(chat["reasoning_effort"]), deployment),
  });
  return Object.keys(config).length === 0 ? null : config;
}
