import type { JsonRecord } from "../providers/json.ts";
import type { ChatAnswer } from "./chat-answer.ts";
import {
  callItem,
  messageItem,
  reasoningItem,
  textPart,
} from "./responses-answer.ts";

interface Call {
  id: string;
  name: string;
  arguments: string;
  /** Its place in the output; null: not begun. */
  place: number | null;
  told: number;
}

/** The output of a Response as it grows. Items stay open until the end: each has its own place, so mixed pieces are no harm. */
export function createItems(answerId: string) {
  const output: JsonRecord[] = [];
  const calls = new Map<number, Call>();
  let reasoning: { place: number; text: string; ended: boolean } | null = null;
  let thinkingBlocks: JsonRecord[] = [];
  let message: {
    place: number;
    text: string;
    refusal: string;
    part: number;
  } | null = null;

  function add(item: JsonRecord): number {
    output.push(item);
    return output.length - 1;
  }
  const at = (place: number) => ({
    item_id: output[place]?.["id"],
    output_index: place,
  });
  function done(place: number, item: JsonRecord): JsonRecord {
    output[place] = item;
    return {
      type: "response.output_item.done",
      output_index: place,
      item,
    };
  }
  const added = (place: number): JsonRecord => ({
    type: "response.output_item.added",
    output_index: place,
    item: output[place],
  });

  function think(text: string): readonly JsonRecord[] {
    if (text === "") {
      return [];
    }
    const events: JsonRecord[] = [];
    if (reasoning === null) {
      const place = add(reasoningItem(answerId, "", []));
      reasoning = { place, text: "", ended: false };
      events.push(added(place));
    }
    const { place } = reasoning;
    if (reasoning.text === "") {
      events.push({
        type: "response.reasoning_summary_part.added",
        ...at(place),
        summary_index: 0,
        part: { type: "summary_text", text: "" },
      });
    }
    reasoning.text += text;
    events.push({
      type: "response.reasoning_summary_text.delta",
      ...at(place),
      summary_index: 0,
      delta: text,
    });
    return events;
  }

  function keepThinking(blocks: readonly JsonRecord[]): readonly JsonRecord[] {
    if (blocks.length === 0) {
      return [];
    }
    thinkingBlocks = [...thinkingBlocks, ...blocks];
    if (reasoning !== null) {
      return [];
    }
    const place = add(reasoningItem(answerId, "", []));
    reasoning = { place, text: "", ended: false };
    return [added(place)];
  }

  function endReasoning(): readonly JsonRecord[] {
    if (reasoning === null || reasoning.ended) {
      return [];
    }
    reasoning.ended = true;
    const { place, text } = reasoning;
    const part = { type: "summary_text", text };
    return [
      ...(text === ""
        ? []
        : [
            {
              type: "response.reasoning_summary_text.done",
              ...at(place),
              summary_index: 0,
              text,
            },
            {
              type: "response.reasoning_summary_part.done",
              ...at(place),
              summary_index: 0,
              part,
            },
          ]),
      done(place, reasoningItem(answerId, text, thinkingBlocks)),
    ];
  }

  function say(text: string, refusal: string): readonly JsonRecord[] {
    if (text === "" && refusal === "") {
      return [];
    }
    const events: JsonRecord[] = [];
    if (message === null) {
      const place = add(messageItem(answerId, "", "", "in_progress"));
      message = { place, text: "", refusal: "", part: 0 };
      events.push(added(place));
    }
    const { place } = message;
    if (text !== "") {
      if (message.text === "") {
        events.push({
          type: "response.content_part.added",
          ...at(place),
          content_index: message.part++,
          part: textPart(""),
        });
      }
      message.text += text;
      events.push({
        type: "response.output_text.delta",
        ...at(place),
        content_index: 0,
        delta: text,
        logprobs: [],
      });
    }
    // A refusal comes whole, after the text.
    message.refusal += refusal;
    return events;
  }

  function endMessage(): readonly JsonRecord[] {
    if (message === null) {
      return [];
    }
    const { place, text, refusal, part } = message;
    return [
      ...(text === ""
        ? []
        : [
            {
              type: "response.output_text.done",
              ...at(place),
              content_index: 0,
              text,
              logprobs: [],
            },
            {
              type: "response.content_part.done",
              ...at(place),
              content_index: 0,
              part: textPart(text),
            },
          ]),
      ...(refusal === "" ? [] : refusalEvents(place, part, refusal)),
      done(place, messageItem(answerId, text, refusal, "completed")),
    ];
  }

  function refusalEvents(
    place: number,
    index: number,
    refusal: string,
  ): readonly JsonRecord[] {
    const where = { ...at(place), content_index: index };
    return [
      {
        type: "response.content_part.added",
        ...where,
        part: { type: "refusal", refusal: "" },
      },
      { type: "response.refusal.delta", ...where, delta: refusal },
      { type: "response.refusal.done", ...where, refusal },
      {
        type: "response.content_part.done",
        ...where,
        part: { type: "refusal", refusal },
      },
    ];
  }

  function takeCall(part: ChatAnswer["toolCalls"][number]): void {
    const call: Call = calls.get(part.index) ?? {
      id: "",
      name: "",
      arguments: "",
      place: null,
      told: 0,
    };
    calls.set(part.index, call);
    call.id ||= part.id;
    call.name ||= part.name;
    call.arguments += part.arguments;
  }

  function tellCalls(atEnd: boolean): readonly JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, call] of calls) {
      if (call.place === null) {
        if (call.name === "" && !atEnd) {
          continue;
        }
        const begun = { id: call.id, name: call.name, arguments: "" };
        call.place = add(callItem(answerId, index, begun, "in_progress"));
        events.push(added(call.place));
      }
      const delta = call.arguments.slice(call.told);
      call.told = call.arguments.length;
      if (delta !== "") {
        events.push({
          type: "response.function_call_arguments.delta",
          ...at(call.place),
          delta,
        });
      }
    }
    return events;
  }

  function endCalls(): readonly JsonRecord[] {
    return [...calls].flatMap(([index, call]) => {
      const place = call.place ?? 0;
      return [
        {
          type: "response.function_call_arguments.done",
          ...at(place),
          name: call.name,
          arguments: call.arguments,
        },
        done(place, callItem(answerId, index, call, "completed")),
      ];
    });
  }

  return {
    write(answer: ChatAnswer): readonly JsonRecord[] {
      const events = [
        ...think(answer.reasoning),
        ...keepThinking(answer.thinkingBlocks),
        ...say(answer.text, answer.refusal),
      ];
      answer.toolCalls.forEach(takeCall);
      return answer.toolCalls.length === 0
        ? events
        : [...events, ...tellCalls(false)];
    },
    end: (): readonly JsonRecord[] => [
      ...tellCalls(true),
      ...endReasoning(),
      ...endMessage(),
      ...endCalls(),
    ],
    output: (): readonly JsonRecord[] => output,
  };
}
