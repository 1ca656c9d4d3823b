import {
  isRecord,
  listOf,
  numberOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { fieldOf, jsonSchemaOf } from "./contents-fields.ts";
import { messagesOfContents, textOfContent } from "./contents-messages.ts";
import { invalidParam } from "../http/errors.ts";
import { effortOfBudget } from "./dialect.ts";

/**
 * A body of Gemini's `generateContent` as one of OpenAI's chat, for a model of any provider. Throws `invalid_request` naming what chat
 * does not have. Safety settings are for Gemini alone; labels are left out. https://ai.google.dev/api/generate-content
 */
export function chatOfContents(body: JsonRecord): JsonRecord {
  if (fieldOf(body, "cachedContent") != null) {
    throw invalidParam(
      "cachedContent",
      "is not supported: send the content in `contents`.",
    );
  }
  const instructions = textOfContent(fieldOf(body, "systemInstruction"));
  return {
    ...present({
      ...toolsOf(body),
      ...generationOf(recordOf(fieldOf(body, "generationConfig"))),
      extra_body: googleOf(body),
    }),
    messages: [
      ...(instructions === ""
        ? []
        : [{ role: "system", content: instructions }]),
      ...messagesOfContents(body["contents"]),
    ],
  };
}

/** What Gemini has besides chat; other providers are not sent it. null: nothing. */
function googleOf(body: JsonRecord): JsonRecord | null {
  const config = recordOf(fieldOf(body, "generationConfig"));
  const thinking = recordOf(fieldOf(config, "thinkingConfig"));
  const isShown =
    effortOf(thinking) === null &&
    fieldOf(thinking, "includeThoughts") === true;
  const google = present({
    thinking_config: isShown ? { include_thoughts: true } : null,
    safety_settings: fieldOf(body, "safetySettings"),
  });
  return Object.keys(google).length === 0 ? null : { google };
}

function toolsOf(body: JsonRecord): JsonRecord {
  const offered = listOf(body["tools"]).map((tool, index) =>
    offeredBy(recordOf(tool), `tools[${index}]`),
  );
  const functions = offered.flatMap(({ functions }) => functions);
  const search = offered.some(({ isSearch }) => isSearch) ? {} : undefined;
  const others = offered.flatMap(({ others }) => others);
  const config = recordOf(fieldOf(body, "toolConfig"));
  const calling = recordOf(fieldOf(config, "functionCallingConfig"));
  const allowed = listOf(fieldOf(calling, "allowedFunctionNames"));
  const mode = textOf(calling["mode"]).toLowerCase();
  const tools = [
    ...(allowed.length === 0
      ? functions
      : functions.filter(({ function: { name } }) => allowed.includes(name))),
    ...others,
  ];
  return {
    tools: tools.length === 0 ? undefined : tools,
    tool_choice: functions.length === 0 ? undefined : CHOICES[mode],
    web_search_options: search,
  };
}

const CHOICES: Readonly<Record<string, string>> = {
  any: "required",
  none: "none",
};

/** A search is one that every provider may have; reading the addresses in a prompt is Gemini's alone. */
function offeredBy(tool: JsonRecord, path: string) {
  const found = fieldOf(tool, "googleSearch");
  const read = fieldOf(tool, "urlContext");
  const [other] = Object.keys(tool).filter((name) => !OFFERED.test(name));
  if (other !== undefined) {
    throw invalidParam(
      `${path}.${other}`,
      "is not supported: it runs at Google; declare a function instead.",
    );
  }
  return {
    functions: functionsOf(tool),
    isSearch: isRecord(found),
    others: isRecord(read) ? [{ urlContext: read }] : [],
  };
}

const OFFERED = /^(function_?declarations|google_?search|url_?context)$/i;

function functionsOf(tool: JsonRecord) {
  return recordsOf(fieldOf(tool, "functionDeclarations")).map(
    (declaration) => ({
      type: "function",
      function: present({
        name: declaration["name"],
        description: declaration["description"],
        parameters:
          fieldOf(declaration, "parametersJsonSchema") ??
          jsonSchemaOf(declaration["parameters"]),
      }),
    }),
  );
}

function generationOf(config: JsonRecord): JsonRecord {
  rejectUnfit(config);
  return {
    temperature: config["temperature"],
    top_p: fieldOf(config, "topP"),
    top_k: fieldOf(config, "topK"),
    max_tokens: fieldOf(config, "maxOutputTokens"),
    stop: fieldOf(config, "stopSequences"),
    seed: config["seed"],
    presence_penalty: fieldOf(config, "presencePenalty"),
    frequency_penalty: fieldOf(config, "frequencyPenalty"),
    response_format: formatOf(config),
    // An effort asks for the summary, too; without one, the model decides how much it thinks.
    reasoning_effort: effortOf(recordOf(fieldOf(config, "thinkingConfig"))),
  };
}

function rejectUnfit(config: JsonRecord): void {
  if ((numberOf(fieldOf(config, "candidateCount")) ?? 1) > 1) {
    throw invalidParam("generationConfig.candidateCount", "must be 1.");
  }
  if (fieldOf(config, "responseLogprobs") === true) {
    throw invalidParam(
      "generationConfig.responseLogprobs",
      "is not supported.",
    );
  }
  const modalities = listOf(fieldOf(config, "responseModalities"));
  if (modalities.some((modality) => modality !== "TEXT")) {
    throw invalidParam(
      "generationConfig.responseModalities",
      "must be TEXT: use POST /v1/images/generations or /v1/audio/speech.",
    );
  }
}

function formatOf(config: JsonRecord): JsonRecord | null {
  const schema =
    fieldOf(config, "responseJsonSchema") ??
    jsonSchemaOf(fieldOf(config, "responseSchema"));
  if (isRecord(schema)) {
    return { type: "json_schema", json_schema: { name: "answer", schema } };
  }
  return fieldOf(config, "responseMimeType") === "application/json"
    ? { type: "json_object" }
    : null;
}

/** The effort of a level of thinking, or of a budget in tokens; null: the model decides. */
function effortOf(thinking: JsonRecord): string | null {
  const level = textOf(fieldOf(thinking, "thinkingLevel")).toLowerCase();
  if (/^(minimal|low|medium|high)$/.test(level)) {
    return level;
  }
  const budget = numberOf(fieldOf(thinking, "thinkingBudget")) ?? -1;
  if (budget < 0) {
    return null;
  }
  return budget === 0 ? "none" : effortOfBudget(budget);
}
