import { Readable } from "node:stream";
import { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";

/** `mock_testing_fallbacks` fails the first alias, `mock_timeout` every attempt; null: nothing was asked for. */
export function mockFailure(
  { wishes }: Call,
  attemptsBefore: number,
): UpstreamFailure | null {
  if (wishes.mock.timeout) {
    return askedFor(408, "the call asked for a timeout (mock_timeout)");
  }
  if (wishes.mock.failFirst && attemptsBefore === 0) {
    return askedFor(
      500,
      "the call asked for a failure (mock_testing_fallbacks)",
    );
  }
  return null;
}

function askedFor(status: number, message: string): UpstreamFailure {
  const failure = new UpstreamFailure(status, message);
  failure.byRequest = true;
  return failure;
}

/** `mock_response`: that text as the answer, without asking a provider; null: not asked for. */
export function mockAnswer(call: Call, deployment: PricedDeployment) {
  const { response } = call.wishes.mock;
  if (response === null) {
    return null;
  }
  const head = {
    id: `chatcmpl-${call.id}`,
    created: Math.floor(call.startedAt / 1_000),
    model: deployment.model,
  };
  if (!call.stream) {
    return {
      kind: "whole" as const,
      contentType: "application/json",
      body: Buffer.from(
        JSON.stringify({
          ...head,
          object: "chat.completion",
          choices: [
            {
              index: 0,
              message: { role: "assistant", content: response },
              finish_reason: "stop",
            },
          ],
        }),
      ),
    };
  }
  const chunk = (choice: object) =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, ...choice }] })}\n\n`;
  const events = [
    chunk({ delta: { role: "assistant", content: response } }),
    chunk({ delta: {}, finish_reason: "stop" }),
    "data: [DONE]\n\n",
  ];
  const body = Readable.from(events.map((event) => Buffer.from(event)));
  return {
    kind: "stream" as const,
    contentType: "text/event-stream",
    body,
    chunks: body as AsyncIterable<Buffer>,
  };
}
