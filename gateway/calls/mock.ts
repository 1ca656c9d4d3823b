import { Readable } from "node:stream";
import { UpstreamFailure } from "../providers/failure.ts";
import type { Target } from "../routing/route.ts";
import type { Call } from "./call.ts";
import type { MockFailure } from "./options.ts";

/** The failures that a call can ask for. */
const FAILURES: Readonly<
  Record<MockFailure, { readonly status: number; readonly message: string }>
> = {
  timeout: {
    status: 408,
    message: "the call requested a timeout (mock_timeout)",
  },
  fallbacks: {
    status: 500,
    message: "the call requested a failure (mock_testing_fallbacks)",
  },
  context_window: {
    status: 400,
    message:
      "the call requested a prompt above the context window (mock_testing_context_fallbacks)",
  },
  content_policy: {
    status: 400,
    message:
      "the call requested a violation of the content policy (mock_testing_content_policy_fallbacks)",
  },
  rate_limit: {
    status: 429,
    message: "the call requested a rate limit (mock_testing_rate_limit_error)",
  },
};

/** Texts of `mock_response` that LiteLLM's clients use to ask for a failure. */
const FAILING_RESPONSES: ReadonlyMap<string, MockFailure> = new Map([
  ["litellm.InternalServerError", "fallbacks"],
  ["litellm.ContextWindowExceededError", "context_window"],
  ["litellm.RateLimitError", "rate_limit"],
]);

/**
 * The answer that a call asks for with `mock_response`, without a provider; null: none. Throws the failure that it asks
 * for: a rate limit at the first attempt, a timeout at each, the others at each attempt of the alias called, so that its
 * fallbacks answer.
 */
export function mockAnswer(
  call: Call,
  { group, deployment }: Pick<Target, "group" | "deployment">,
  attemptsBefore: number,
) {
  const { response, failure } = call.options.mock;
  if (
    failure !== null &&
    isDue(failure, group === call.group, attemptsBefore)
  ) {
    throw requestedFailure(failure);
  }
  if (response === null) {
    return null;
  }
  const failing = FAILING_RESPONSES.get(response);
  if (failing !== undefined) {
    throw requestedFailure(failing);
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

function isDue(
  failure: MockFailure,
  isFirstAlias: boolean,
  attemptsBefore: number,
): boolean {
  switch (failure) {
    case "timeout":
      return true;
    case "rate_limit":
      return attemptsBefore === 0;
    default:
      return isFirstAlias;
  }
}

function requestedFailure(requested: MockFailure): UpstreamFailure {
  const { status, message } = FAILURES[requested];
  const failure = new UpstreamFailure(status, message);
  failure.byRequest = true;
  return failure;
}
