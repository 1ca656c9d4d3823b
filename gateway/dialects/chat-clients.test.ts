import OpenAI from "openai";
import { expect, test } from "vitest";
import { sseText } from "../providers/wire.ts";
import {
  chatAnswerOf,
  chatPieces,
  fetchOf,
  RECORDINGS,
} from "./chat-stream-fixture.ts";

test.each(RECORDINGS)(
  "%s %s: OpenAI's own client reads the chat stream and the whole alike",
  async (provider, name) => {
    const streaming = new OpenAI({
      apiKey: "k",
      fetch: fetchOf(sseText(chatPieces(provider, name)), "text/event-stream"),
    });
    const answering = new OpenAI({
      apiKey: "k",
      fetch: fetchOf(
        chatAnswerOf(provider, name).toString(),
        "application/json",
      ),
    });
    const request = {
      model: "alias",
      messages: [{ role: "user" as const, content: "Hello" }],
    };
    const completion = await streaming.chat.completions
      .stream({ ...request, stream_options: { include_usage: true } })
      .finalChatCompletion();
    const answered = await answering.chat.completions.create(request);
    const [choice] = answered.choices;
    expect(completion.usage).toEqual(answered.usage);
    expect(completion.choices[0]?.finish_reason).toBe(choice?.finish_reason);
    const streamed = completion.choices[0]?.message;
    expect(streamed?.content ?? "").toBe(choice?.message.content ?? "");
    const calls = (message: OpenAI.Chat.ChatCompletionMessage | undefined) =>
      (message?.tool_calls ?? []).map((call) => [
        call.id,
        call.type === "function" && [
          call.function.name,
          JSON.parse(call.function.arguments) as unknown,
        ],
      ]);
    expect(calls(streamed)).toEqual(calls(choice?.message));
  },
);
