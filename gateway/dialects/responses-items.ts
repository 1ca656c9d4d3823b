import type { JsonRecord } from "../../core/json.ts";
import type { ChatAnswer, ToolCallPart } from "./chat-answer.ts";
import {
  annotationOf,
  cutOffItem,
  messageItem,
  reasoningItem,
  textPart,
} from "./responses-answer.ts";
import { callItem, endingEvents, NO_ARGUMENTS } from "./responses-calls.ts";
import type { TranslatedTools } from "./responses-tools.ts";

interface Reasoning {
  /** Its index in the output, as `place` below. */
  readonly place: number;
  text: string;
  ended: boolean;
}

interface Message {
  readonly place: number;
  text: string;
  refusal: string;
  readonly annotations: JsonRecord[];
  /** Content parts that were added. */
  parts: number;
}

interface ToolCall {
  id: string;
  name: string;
  arguments: string;
  /** null: not added to the output yet. */
  place: number | null;
  /** How many characters of the arguments were sent. */
  sent: number;
}

/**
 * The output of a Response as it grows. Items stay open until the end: each has its own index, so their pieces may come
 * interleaved.
 */
export class ResponseItems {
  readonly #answerId: string;
  readonly #tools: TranslatedTools;
  readonly #output: JsonRecord[] = [];
  readonly #calls = new Map<number, ToolCall>();
  #reasoning: Reasoning | null = null;
  #thinkingBlocks: readonly JsonRecord[] = [];
  #message: Message | null = null;
  #cutOff = false;

  constructor(answerId: string, tools: TranslatedTools) {
    this.#answerId = answerId;
    this.#tools = tools;
  }

  get output(): readonly JsonRecord[] {
    return this.#output;
  }

  write(answer: ChatAnswer): readonly JsonRecord[] {
    const events = [
      ...this.#writeReasoning(answer.reasoning),
      ...this.#takeThinking(answer.thinkingBlocks),
      ...this.#writeMessage(answer.text, answer.refusal),
      ...this.#annotate(answer.annotations.map(annotationOf)),
    ];
    if (answer.toolCalls.length === 0) {
      return events;
    }
    for (const part of answer.toolCalls) {
      this.#takeCall(part);
    }
    return [...events, ...this.#writeCalls(false)];
  }

  /** `cutOff`: the last item is incomplete. */
  end(cutOff: boolean): readonly JsonRecord[] {
    this.#cutOff = cutOff;
    return [
      ...this.#writeCalls(true),
      ...this.#endReasoning(),
      ...this.#endMessage(),
      ...this.#endCalls(),
    ];
  }

  #writeReasoning(text: string): readonly JsonRecord[] {
    if (text === "") {
      return [];
    }
    const events: JsonRecord[] = [];
    const reasoning = this.#reasoning ?? this.#startReasoning(events);
    const where = { ...this.#at(reasoning.place), summary_index: 0 };
    if (reasoning.text === "") {
      events.push({
        type: "response.reasoning_summary_part.added",
        ...where,
        part: { type: "summary_text", text: "" },
      });
    }
    reasoning.text += text;
    events.push({
      type: "response.reasoning_summary_text.delta",
      ...where,
      delta: text,
    });
    return events;
  }

  #takeThinking(blocks: readonly JsonRecord[]): readonly JsonRecord[] {
    if (blocks.length === 0) {
      return [];
    }
    this.#thinkingBlocks = [...this.#thinkingBlocks, ...blocks];
    const events: JsonRecord[] = [];
    if (this.#reasoning === null) {
      this.#startReasoning(events);
    }
    return events;
  }

  #startReasoning(events: JsonRecord[]): Reasoning {
    const place = this.#add(reasoningItem(this.#answerId, "", []), events);
    this.#reasoning = { place, text: "", ended: false };
    return this.#reasoning;
  }

  #endReasoning(): readonly JsonRecord[] {
    if (this.#reasoning === null || this.#reasoning.ended) {
      return [];
    }
    this.#reasoning.ended = true;
    const { place, text } = this.#reasoning;
    const where = { ...this.#at(place), summary_index: 0 };
    const part = { type: "summary_text", text };
    const item = reasoningItem(this.#answerId, text, this.#thinkingBlocks);
    return [
      ...(text === ""
        ? []
        : [
            { type: "response.reasoning_summary_text.done", ...where, text },
            { type: "response.reasoning_summary_part.done", ...where, part },
          ]),
      this.#done(place, item),
    ];
  }

  #writeMessage(text: string, refusal: string): readonly JsonRecord[] {
    if (text === "" && refusal === "") {
      return [];
    }
    const events: JsonRecord[] = [];
    const message = this.#message ?? this.#startMessage(events);
    if (text !== "") {
      if (message.text === "") {
        events.push({
          type: "response.content_part.added",
          ...this.#at(message.place),
          content_index: message.parts++,
          part: textPart(""),
        });
      }
      message.text += text;
      events.push({
        type: "response.output_text.delta",
        ...this.#at(message.place),
        content_index: 0,
        delta: text,
        logprobs: [],
      });
    }
    // A refusal is sent whole, after the text.
    message.refusal += refusal;
    return events;
  }

  #annotate(annotations: readonly JsonRecord[]): readonly JsonRecord[] {
    const message = this.#message;
    // Sources follow what they are for.
    if (message === null || message.text === "") {
      return [];
    }
    return annotations.map((annotation) => ({
      type: "response.output_text.annotation.added",
      ...this.#at(message.place),
      content_index: 0,
      annotation_index: message.annotations.push(annotation) - 1,
      annotation,
    }));
  }

  #startMessage(events: JsonRecord[]): Message {
    const content = { text: "", refusal: "", annotations: [] };
    const item = messageItem(this.#answerId, content, "in_progress");
    const place = this.#add(item, events);
    this.#message = { place, ...content, parts: 0 };
    return this.#message;
  }

  #endMessage(): readonly JsonRecord[] {
    if (this.#message === null) {
      return [];
    }
    const { place, text, refusal, annotations, parts } = this.#message;
    const first = { ...this.#at(place), content_index: 0 };
    const last = { ...this.#at(place), content_index: parts };
    const item = messageItem(this.#answerId, this.#message, "completed");
    return [
      ...(text === ""
        ? []
        : [
            {
              type: "response.output_text.done",
              ...first,
              text,
              logprobs: [],
            },
            {
              type: "response.content_part.done",
              ...first,
              part: textPart(text, annotations),
            },
          ]),
      ...(refusal === "" ? [] : refusalEvents(last, refusal)),
      this.#done(place, item),
    ];
  }

  #takeCall(part: ToolCallPart): void {
    const call: ToolCall = this.#calls.get(part.index) ?? {
      id: "",
      name: "",
      arguments: "",
      place: null,
      sent: 0,
    };
    this.#calls.set(part.index, call);
    call.id ||= part.id;
    call.name ||= part.name;
    call.arguments += part.arguments;
  }

  /** Sends what can be sent of the tool calls; at the end everything. */
  #writeCalls(atEnd: boolean): readonly JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, call] of this.#calls) {
      if (call.place === null) {
        if (call.name === "" && !atEnd) {
          continue;
        }
        const started = { id: call.id, name: call.name, arguments: "" };
        call.place = this.#add(
          this.#callItem(index, started, "in_progress"),
          events,
        );
      }
      if (!this.#isFunction(call)) {
        continue;
      }
      if (atEnd) {
        call.arguments ||= NO_ARGUMENTS;
      }
      const delta = call.arguments.slice(call.sent);
      call.sent = call.arguments.length;
      if (delta !== "") {
        events.push({
          type: "response.function_call_arguments.delta",
          ...this.#at(call.place),
          delta,
        });
      }
    }
    return events;
  }

  #endCalls(): readonly JsonRecord[] {
    return [...this.#calls].flatMap(([index, call]) => {
      const place = call.place ?? 0;
      const item = this.#callItem(index, call, "completed");
      return [...endingEvents(item, this.#at(place)), this.#done(place, item)];
    });
  }

  #isFunction({ name }: ToolCall): boolean {
    const kind = this.#tools.get(name)?.kind;
    return kind === undefined || kind === "function";
  }

  #callItem(
    index: number,
    call: Pick<ToolCall, "id" | "name" | "arguments">,
    status: "in_progress" | "completed",
  ): JsonRecord {
    const { id, name, arguments: written } = call;
    const part = { index, id, name, arguments: written };
    return callItem(this.#answerId, part, status, this.#tools);
  }

  /** Appends an item and its event; returns its index in the output. */
  #add(item: JsonRecord, events: JsonRecord[]): number {
    const place = this.#output.push(item) - 1;
    events.push({
      type: "response.output_item.added",
      output_index: place,
      item,
    });
    return place;
  }

  #at(place: number): JsonRecord {
    return { item_id: this.#output[place]?.["id"], output_index: place };
  }

  #done(place: number, ended: JsonRecord): JsonRecord {
    const isLast = place === this.#output.length - 1;
    const item = this.#cutOff && isLast ? cutOffItem(ended) : ended;
    this.#output[place] = item;
    return { type: "response.output_item.done", output_index: place, item };
  }
}

function refusalEvents(
  where: JsonRecord,
  refusal: string,
): readonly JsonRecord[] {
  const part = (text: string) => ({ type: "refusal", refusal: text });
  return [
    { type: "response.content_part.added", ...where, part: part("") },
    { type: "response.refusal.delta", ...where, delta: refusal },
    { type: "response.refusal.done", ...where, refusal },
    { type: "response.content_part.done", ...where, part: part(refusal) },
  ];
}
