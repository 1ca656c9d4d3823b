import {
  contentBlocks,
  toolInput,
  toolUseId,
  type Lack,
} from "./anthropic-content.ts";
import type { ModelTraits } from "./anthropic-model.ts";
import { isSigned } from "./anthropic-signed.ts";
import {
  isRecord,
  listOf,
  present,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

interface Conversation {
  /** Texts of the system and developer messages at the start. */
  readonly system: readonly JsonRecord[];
  /** User and assistant alternate; instructions follow a user turn. */
  readonly turns: readonly Turn[];
}

export interface Turn {
  readonly role: "user" | "assistant" | "system";
  readonly content: readonly JsonRecord[];
}

/**
 * The messages of an OpenAI body as Anthropic's conversation: system messages at the start separate, tool messages as results
 * in a user turn, consecutive messages of one role joined.
 */
export function conversationOf(
  messages: unknown,
  lack: Lack,
  traits: ModelTraits,
): Conversation {
  const system: JsonRecord[] = [];
  const turns = new Turns(traits);
  listOf(messages).forEach((message, index) => {
    const path = `messages[${index}]`;
    if (!isRecord(message)) {
      return lack(path);
    }
    const content = () =>
      marked(
        contentBlocks(message["content"], `${path}.content`, lack),
        message["cache_control"],
      );
    switch (message["role"]) {
      case "system":
      case "developer":
        return turns.isEmpty
          ? void system.push(...content())
          : turns.instruct(content());
      case "user":
        return turns.add("user", content());
      case "assistant":
        return turns.add("assistant", assistantBlocks(message, path, lack));
      case "tool":
        return turns.add("user", [toolResult(message, path, lack)]);
      default:
        return lack(`${path}.role`);
    }
  });
  return { system, turns: withoutTrailingSpace(turns.end()) };
}

/**
 * Collects the turns of a conversation. Instructions come after the user turn in which, or before which, they were given: among those at
 * the start they would change the cached prefix.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
class Turns {
  readonly #systemTurns: boolean;
  readonly #turns: { role: Turn["role"]; content: JsonRecord[] }[] = [];
  /** Wait for the end of a user turn. */
  #instructions: JsonRecord[] = [];

  constructor({ systemTurns }: ModelTraits) {
    this.#systemTurns = systemTurns;
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  add(role: "user" | "assistant", blocks: readonly JsonRecord[]): void {
    if (blocks.length === 0) {
      return;
    }
    if (role === "assistant") {
      this.#placeInstructions();
    }
    const last = this.#turns.at(-1);
    if (last?.role === role) {
      last.content.push(...blocks);
    } else {
      this.#turns.push({ role, content: [...blocks] });
    }
  }

  instruct(blocks: readonly JsonRecord[]): void {
    this.#instructions.push(...blocks);
  }

  end(): readonly Turn[] {
    this.#placeInstructions();
    // A conversation must start with a user turn, even after a greeting of the assistant or a lone system message.
    if (this.#turns[0]?.role !== "user") {
      const content = [{ type: "text", text: "." }];
      this.#turns.unshift({ role: "user", content });
    }
    return this.#turns;
  }

  #placeInstructions(): void {
    const content = this.#instructions;
    if (content.length === 0) {
      return;
    }
    const last = this.#turns.at(-1);
    if (last?.role !== "user") {
      this.#turns.push({ role: "user", content });
    } else if (this.#systemTurns) {
      this.#turns.push({ role: "system", content });
    } else {
      last.content.push(...content);
    }
    this.#instructions = [];
  }
}

/** The cache mark of a whole message belongs on its last block. */
function marked(
  blocks: readonly JsonRecord[],
  cacheControl: unknown,
): readonly JsonRecord[] {
  const last = blocks.at(-1);
  return cacheControl == null || last === undefined
    ? blocks
    : [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }];
}

/** Thinking comes first and unchanged, with its signatures: otherwise tool calls that follow from it are rejected. */
function assistantBlocks(
  message: JsonRecord,
  path: string,
  lack: Lack,
): readonly JsonRecord[] {
  for (const field of ["function_call", "audio"]) {
    if (message[field] != null) {
      lack(`${path}.${field}`);
    }
  }
  const thinking = recordsOf(message["thinking_blocks"]).filter(isSigned);
  const calls = recordsOf(message["tool_calls"]).flatMap((call, index) => {
    const called = call["function"];
    if (!isRecord(called)) {
      lack(`${path}.tool_calls[${index}]`);
      return [];
    }
    return [
      present({
        type: "tool_use",
        id: toolUseId(call["id"]),
        name: textOf(called["name"]),
        input: toolInput(called["arguments"]),
        cache_control: call["cache_control"],
      }),
    ];
  });
  const refusal = textOf(message["refusal"]);
  return marked(
    [
      ...thinking,
      ...recordsOf(message["provider_blocks"]),
      ...contentBlocks(message["content"], `${path}.content`, lack),
      ...(refusal === "" ? [] : [{ type: "text", text: refusal }]),
      ...calls,
    ],
    message["cache_control"],
  );
}

function toolResult(message: JsonRecord, path: string, lack: Lack): JsonRecord {
  const { content } = message;
  return present({
    type: "tool_result",
    tool_use_id: toolUseId(message["tool_call_id"]),
    content:
      typeof content === "string"
        ? content
        : contentBlocks(content, `${path}.content`, lack),
    is_error: message["is_error"] === true ? true : null,
    cache_control: message["cache_control"],
  });
}

/** An answer started by the caller (prefill) must not end in white space. */
function withoutTrailingSpace(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== "assistant" || block?.["type"] !== "text") {
    return turns;
  }
  const text = textOf(block["text"]).trimEnd();
  const content = [
    ...last.content.slice(0, -1),
    ...(text === "" ? [] : [{ ...block, text }]),
  ];
  return content.length === 0
    ? turns.slice(0, -1)
    : [...turns.slice(0, -1), { ...last, content }];
}
