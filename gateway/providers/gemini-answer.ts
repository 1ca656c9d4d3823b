import { endOfChat, failedPieces } from "./chat-stream-end.ts";
import {
  isRecord,
  numberOf,
  parseJson,
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { createThoughts } from "./gemini-thinking.ts";
import { createStreamReader, readAnswer } from "./openai.ts";
import type { StreamTranslator, TranslatedAnswer } from "./wire.ts";

/** A whole answer with OpenAI's usage and finish reason; unchanged when they are right already. */
export function geminiAnswer(bytes: Buffer): TranslatedAnswer {
  const answer = parseRecord(bytes.toString("utf8"));
  const fixed = answer === null ? null : fixedAnswer(answer);
  const body =
    fixed === null || fixed === answer
      ? bytes
      : Buffer.from(JSON.stringify(fixed));
  return { body, facts: readAnswer(body) };
}

function fixedAnswer(answer: JsonRecord): JsonRecord {
  const choices = mapChoices(answer["choices"], (given) => {
    const choice = withSaid(given, "message", createThoughts());
    const calls = recordOf(choice["message"])["tool_calls"];
    return Array.isArray(calls) && calls.length > 0
      ? calledTools(choice)
      : withheld(choice, { message: { role: "assistant", content: null } });
  });
  return withUsage(answer, choices);
}

/** Chunks in OpenAI's form; those that need no change pass unchanged. */
export function createGeminiStream(): StreamTranslator {
  const reader = createStreamReader();
  const states = new Map<number, ChoiceState>();
  let ended = false;

  function fixedChunk(chunk: JsonRecord): JsonRecord {
    const choices = mapChoices(chunk["choices"], (given) => {
      const index = numberOf(given["index"]) ?? 0;
      const state = states.get(index) ?? {
        tools: createToolPlaces(),
        thoughts: createThoughts(),
      };
      states.set(index, state);
      const { tools, thoughts } = state;
      // Left out until the last chunk; strict clients require it.
      const choice = withSaid(
        { finish_reason: null, ...given },
        "delta",
        thoughts,
      );
      const delta = recordOf(choice["delta"]);
      const calls = delta["tool_calls"];
      const placed = Array.isArray(calls)
        ? {
            ...choice,
            delta: { ...delta, tool_calls: calls.map(tools.place) },
          }
        : choice;
      return tools.count() > 0
        ? calledTools(placed)
        : withheld(placed, { delta: {} });
    });
    return withUsage(chunk, choices);
  }

  return {
    push(event) {
      if (ended) {
        return [];
      }
      const chunk = event.data === "[DONE]" ? null : chunkIn(event.data);
      const fixed = chunk === null ? null : fixedChunk(chunk);
      const asItWas = fixed === chunk && !event.data.startsWith("[");
      const data =
        fixed === null || asItWas ? event.data : JSON.stringify(fixed);
      const kind = reader.read({ event: null, data });
      ended = kind === "done" || kind === "error";
      return kind === "error"
        ? failedPieces(event.event, data)
        : [{ kind, event: event.event, data }];
    },
    end: () => (ended ? [] : endOfChat(reader.facts())),
    facts: () => reader.facts(),
  };
}

interface ChoiceState {
  readonly tools: ToolPlaces;
  readonly thoughts: (delta: JsonRecord) => JsonRecord;
}

/** A choice with another message or piece; the same if that is unchanged. */
function withSaid(
  choice: JsonRecord,
  name: "message" | "delta",
  change: (said: JsonRecord) => JsonRecord,
): JsonRecord {
  const said = recordOf(choice[name]);
  const changed = change(said);
  return changed === said ? choice : { ...choice, [name]: changed };
}

/** Errors are wrapped in a list. */
function chunkIn(data: string): JsonRecord | null {
  const parsed = parseJson(data);
  const [first] = recordsOf(parsed);
  return isRecord(parsed) ? parsed : (first ?? null);
}

interface ToolPlaces {
  place(call: unknown): unknown;
  count(): number;
}

/** Gives streamed tool calls their index: a new id or name starts one, anything else continues the last. */
function createToolPlaces(): ToolPlaces {
  const places = new Map<string, number>();
  let last = -1;
  return {
    place(call) {
      if (!isRecord(call)) {
        return call;
      }
      const id = textOf(call["id"]);
      const known = places.get(id);
      if (id !== "" && known !== undefined) {
        last = known;
      } else if (
        id !== "" ||
        last < 0 ||
        textOf(recordOf(call["function"])["name"]) !== ""
      ) {
        last = places.size;
        // A call without an id is stored under its index, prefixed so that it equals no id.
        places.set(id === "" ? `\u0000${last}` : id, last);
      }
      // An empty id would overwrite the first one.
      const { id: _id, ...rest } = call;
      return { ...(id === "" ? rest : call), index: last };
    },
    count: () => places.size,
  };
}

/** An answer that calls tools ends with `tool_calls`, whatever reason was given. */
function calledTools(choice: JsonRecord): JsonRecord {
  return choice["finish_reason"] === "stop"
    ? { ...choice, finish_reason: "tool_calls" }
    : choice;
}

/**
 * A choice that is filtered says why (`content_filter: PROHIBITED_CONTENT`), which no client knows, and may lack its message.
 * `empty` stands for that.
 */
function withheld(choice: JsonRecord, empty: JsonRecord): JsonRecord {
  return textOf(choice["finish_reason"]).startsWith(`${FILTERED}:`)
    ? { ...empty, ...choice, finish_reason: FILTERED }
    : choice;
}

const FILTERED = "content_filter";

function mapChoices(
  choices: unknown,
  fix: (choice: JsonRecord) => JsonRecord,
): unknown {
  if (!Array.isArray(choices)) {
    return choices;
  }
  const fixed = choices.map((choice: unknown) =>
    isRecord(choice) ? fix(choice) : choice,
  );
  return fixed.every((choice, index) => choice === choices[index])
    ? choices
    : fixed;
}

/** Thinking is only part of the total: all tokens except the prompt are billed as output. */
function withUsage(answer: JsonRecord, choices: unknown): JsonRecord {
  const usage = answer["usage"];
  const fixed = isRecord(usage) ? fixedUsage(usage) : usage;
  return fixed === usage && choices === answer["choices"]
    ? answer
    : { ...answer, choices, usage: fixed };
}

function fixedUsage(usage: JsonRecord): JsonRecord {
  const prompt = numberOf(usage["prompt_tokens"]);
  const total = numberOf(usage["total_tokens"]);
  const completion = numberOf(usage["completion_tokens"]) ?? 0;
  if (prompt === null || total === null || total - prompt <= completion) {
    return usage;
  }
  const details = recordOf(usage["completion_tokens_details"]);
  return {
    ...usage,
    completion_tokens: total - prompt,
    completion_tokens_details: {
      ...details,
      reasoning_tokens:
        numberOf(details["reasoning_tokens"]) ?? total - prompt - completion,
    },
  };
}
