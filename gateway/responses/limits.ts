import { DAY_MS } from "../../core/duration.ts";
import type { RetentionConfig } from "../config/types.ts";
import { CallError } from "../http/errors.ts";

/** What a call may continue, and what is stored of one; in bytes of JSON. */
export const MAX_BYTES = 32 * 1024 * 1024;
export const MAX_RESPONSES = 1_000;
/** Items of one conversation that a call reads. */
export const MAX_ITEMS = 10_000;

export function tooLong(param: string): CallError {
  return new CallError(
    "invalid_request",
    `The conversation of \`${param}\` is too long to be continued (at most ${MAX_RESPONSES} responses, ${MAX_ITEMS} items and ${MAX_BYTES / 1024 / 1024} MiB). Start a new one with its summary.`,
    { param },
  );
}

/** When what is used now expires, ms since the epoch; null: never. */
export function expiresAt({
  responseDays,
}: Pick<RetentionConfig, "responseDays">): number | null {
  return responseDays === null ? null : Date.now() + responseDays * DAY_MS;
}
