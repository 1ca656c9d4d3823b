import {
  errorBody,
  statusOf,
  CallError,
  invalidParam,
} from "../../http/errors.ts";
import {
  isRecord,
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../../core/json.ts";

/** What a client asks for in one message. */
export type ClientFrame =
  | {
      readonly kind: "create";
      readonly streamId: string | null;
      /** Prepares what later turns continue, without an answer. */
      readonly isWarmUp: boolean;
    }
  | { readonly kind: "steer"; readonly event: JsonRecord }
  | { readonly kind: "ignored" };

/** Names of streams that OpenAI accepts. */
const STREAM_ID = /^[A-Za-z0-9_.-]{1,256}$/;

/** Throws 400 for a message that is no event of the protocol. */
export function readFrame(parsed: unknown): ClientFrame {
  if (!isRecord(parsed)) {
    throw new CallError("invalid_request", "A message must be a JSON object.");
  }
  switch (parsed["type"]) {
    case "response.create":
      return {
        kind: "create",
        streamId: streamIdOf(parsed["stream_id"]),
        isWarmUp: parsed["generate"] === false,
      };
    case "response.steer":
      return { kind: "steer", event: parsed };
    // Codex confirms with it that it has read a response.
    case "response.processed":
      return { kind: "ignored" };
    default:
      throw invalidParam(
        "type",
        `must be response.create${shownType(parsed["type"])}. Cancel a response by closing the WebSocket.`,
      );
  }
}

function shownType(type: unknown): string {
  return typeof type === "string"
    ? `, not ${JSON.stringify(type.slice(0, 100))}`
    : "";
}

function streamIdOf(value: unknown): string | null {
  if (value === undefined || value === null) {
    return null;
  }
  if (typeof value === "string" && STREAM_ID.test(value)) {
    return value;
  }
  throw invalidParam(
    "stream_id",
    "must be 1 to 256 letters, digits, dots, underscores or hyphens.",
  );
}

/** The body of a call, from its message: it is answered as a stream, and waited for. Throws 400 for one in background. */
export function bodyOfFrame(frame: unknown): JsonRecord {
  const {
    type: _type,
    stream_id: _stream,
    generate: _generate,
    background,
    ...body
  } = recordOf(frame);
  if (background === true) {
    throw invalidParam(
      "background",
      "is not for WebSockets: omit it, or send the call with POST /v1/responses.",
    );
  }
  return { ...body, stream: true };
}

/** An event of a stream as a message. `data` is its JSON. */
export function eventFrame(
  { event, data }: { readonly event: string | null; readonly data: string },
  streamId: string | null,
): { readonly text: string; readonly isLast: boolean } {
  const type = event ?? textOf(parseRecord(data)?.["type"]);
  const text = type === "error" ? nestedError(data) : data;
  return { text: withStreamId(text, streamId), isLast: LAST.has(type) };
}

const LAST: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/** Over HTTP, the fields of an error are in its event itself. */
function nestedError(data: string): string {
  const event = recordOf(parseRecord(data));
  if (isRecord(event["error"])) {
    return data;
  }
  const { type, sequence_number, ...error } = event;
  return JSON.stringify({ type, sequence_number, error });
}

/** A call that was rejected, or failed before its stream began. `error`: of the body of its answer. */
export function errorFrame(
  status: number,
  error: JsonRecord,
  streamId: string | null,
  headers: JsonRecord = {},
): string {
  const isUnknownResponse =
    status === 404 && error["param"] === "previous_response_id";
  const frame = isUnknownResponse
    ? // So that clients send their whole conversation instead.
      {
        type: "error",
        status: 400,
        error: { ...error, code: "previous_response_not_found" },
        headers,
      }
    : { type: "error", status, error, headers };
  return withStreamId(JSON.stringify(frame), streamId);
}

export function callErrorFrame(
  error: CallError,
  streamId: string | null,
): string {
  const { error: body } = errorBody(error);
  return errorFrame(
    statusOf(error),
    { ...body },
    streamId,
    error.details.headers,
  );
}

/** The rejection of input for a response that is being answered: the client sends it in a turn of its own. */
export function steerFailedFrame(event: JsonRecord): string {
  return JSON.stringify({
    type: "response.steer.failed",
    sequence_number: 0,
    error: {
      type: "invalid_request_error",
      code: "steering_not_supported",
      message:
        "A response cannot be steered through this gateway: send the input in the next response.create.",
    },
    steer: {
      previous_response_id: textOf(event["previous_response_id"]),
      input: event["input"] ?? null,
    },
  });
}

function withStreamId(json: string, streamId: string | null): string {
  return streamId === null || !json.startsWith("{")
    ? json
    : `{"stream_id":${JSON.stringify(streamId)},${json.slice(1)}`;
}
