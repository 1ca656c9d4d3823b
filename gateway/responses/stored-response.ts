import { CallError } from "../http/errors.ts";
import {
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { markedReasoning } from "../providers/reasoning-origin.ts";
import type { Session } from "../routing/strategies.ts";

/** What is stored of a call, besides where it belongs. */
export interface Content {
  /** Of this call alone. */
  readonly input: readonly JsonRecord[];
  /** As the client got it. */
  readonly response: JsonRecord;
  /** The deployment that answered; null: none has. */
  readonly modelId: string | null;
  /** The session of the first response. */
  readonly session: Session | null;
}

export interface StoredResponse extends Content {
  readonly id: string;
  readonly conversationId: string | null;
}

/** The input and output of a stored response. */
export function storedItems(stored: StoredResponse): readonly JsonRecord[] {
  return [...stored.input, ...outputOf(stored)];
}

/** What a response answered; reasoning is marked with the deployment that it came from. */
export function outputOf({
  response,
  modelId,
}: Pick<Content, "response" | "modelId">): readonly JsonRecord[] {
  return recordsOf(response["output"]).map((item) =>
    markedReasoning(item, modelId),
  );
}

export function sessionIn(stored: unknown): Session | null {
  const { key, isNamed } = recordOf(stored);
  return typeof key === "string" ? { key, isNamed: isNamed === true } : null;
}

/** Of a response in background. */
export function isUnfinished(status: string): boolean {
  return status === "queued" || status === "in_progress";
}

/** Throws 400 for a response that has no answer, or is continued by its conversation. */
export function rejectUnfinished(
  { id, response, conversationId }: StoredResponse,
  param: string,
): void {
  const status = textOf(response["status"]);
  if (conversationId !== null) {
    throw new CallError(
      "invalid_request",
      `${id} belongs to ${conversationId}: send \`conversation\` instead of \`${param}\`.`,
      { param },
    );
  }
  if (status === "completed" || status === "incomplete") {
    return;
  }
  throw new CallError(
    "invalid_request",
    isUnfinished(status)
      ? `${id} has not ended. Wait until its status is \`completed\`.`
      : `${id} has no answer to continue (${status}). Continue the response before it.`,
    { param },
  );
}

/** A response that ended without an answer. */
export function failedResponse(
  response: JsonRecord,
  message: string,
  code = "server_error",
): JsonRecord {
  return { ...response, status: "failed", error: { code, message } };
}
