import { inWords, parseDuration } from "../core/duration.ts";
import { addressArg } from "./stack-client.ts";
import { jsonArg, UsageError, type ExitCode } from "./verb.ts";
import { printList } from "./terminal.ts";

/** Arguments of commands with a duration and a reason: `hearth silence`, `hearth maintenance`. */
export const timedArgs = {
  duration: {
    type: "positional",
    required: false,
    description: "Duration: 30m, 2h, 7d",
  },
  why: {
    type: "string",
    description: "The reason, shown to other operators",
    valueHint: "text",
  },
  ...jsonArg,
  ...addressArg,
} as const;

interface TimedRequest {
  readonly name: string;
  readonly duration: string;
  readonly why: string;
}

/** Checks the arguments. Throws a UsageError with `usage` when one is missing, or for an invalid duration. */
export function readTimedRequest(
  given: { readonly [Field in keyof TimedRequest]: string | undefined },
  usage: string,
): TimedRequest {
  const { name, duration, why } = given;
  if (name === undefined || duration === undefined || why === undefined) {
    throw new UsageError(usage);
  }
  if (parseDuration(duration) === undefined) {
    throw new UsageError(
      `"${duration}" is not a duration; write 30m, 2h or 7d.`,
    );
  }
  return { name, duration, why };
}

interface ActiveEntry {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly until: number;
  readonly why: string;
}

/** Lists active entries, as JSON if that was asked for, or prints `none`. */
export function listActive<T extends ActiveEntry>(
  json: boolean | undefined,
  all: readonly T[],
  column: string,
  nameOf: (one: T) => string,
  none: string,
): ExitCode {
  printList(json, all, {
    empty: none,
    headings: ["id", column, "remaining", "reason"],
    rowOf: (one) => [
      { text: one.id },
      { text: nameOf(one), tone: "strong" },
      { text: inWords(one.until - Date.now()) },
      { text: one.why },
    ],
  });
  return 0;
}
