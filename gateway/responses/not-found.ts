import { shortened } from "../../core/words.ts";
import { CallError } from "../http/errors.ts";

/** A response or conversation that the caller cannot reach: whether another tenant has it is not said. */
export function notFound(
  what: "response" | "conversation",
  id: string,
  param?: string,
): CallError {
  const reasons =
    what === "response"
      ? "it was not stored (`store: false`), was deleted, has expired, or belongs to another user or key"
      : "it was deleted, has expired, or belongs to another user or key";
  const instead =
    what === "response"
      ? "Send the whole conversation in `input` instead."
      : "Create one with POST /v1/conversations.";
  return new CallError(
    "unknown_object",
    `No ${what} ${shortened(id, MAX_CHARACTERS)}: ${reasons}. ${instead}`,
    param === undefined ? {} : { param },
  );
}

/** An item that a conversation or the stored responses do not have. */
export function itemNotFound(
  id: string,
  where: string,
  param?: string,
): CallError {
  return new CallError(
    "unknown_object",
    `No item ${shortened(id, MAX_CHARACTERS)} in ${where}.`,
    param === undefined ? {} : { param },
  );
}

const MAX_CHARACTERS = 100;
