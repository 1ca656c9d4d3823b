import { Readable } from "node:stream";
import { UpstreamFailure } from "../providers/failure.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";

/**
 * The answer that a call asks for with `mock_response`, without a provider; null: none. Throws the failure that it asks
 * for: with `mock_testing_fallbacks` at the first attempt, with `mock_timeout` at each.
 */
export function mockAnswer(
  call: Call,
  deployment: PricedDeployment,
  attemptsBefore: number,
) {
  const { response, timeout, failFirst } = call.options.mock;
  if (timeout) {
    throw requestedFailure(408, "the call requested a timeout (mock_timeout)");
  }
  if (failFirst && attemptsBefore === 0) {
    throw requestedFailure(
      500,
      "the call requested a failure (mock_testing_fallbacks)",
    );
  }
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

function requestedFailure(status: number, message: string): UpstreamFailure {
  const failure = new UpstreamFailure(status, message);
  failure.byRequest = true;
  return failure;
}
