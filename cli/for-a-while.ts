import { inWords, parseDuration } from "../core/duration.ts";
import { addressArg } from "./stack-client.ts";
import { alignColumns, print, type Cell } from "./terminal.ts";
import { UsageError, type ExitCode } from "./verb.ts";

/** What `hearth silence` and `hearth maintenance` take beside a name: something that holds for a while, and why. */
export const forAWhileArgs = {
  duration: {
    type: "positional",
    required: false,
    description: "For how long: 30m, 2h, 7d",
  },
  why: {
    type: "string",
    description: "The reason, for whoever looks next",
    valueHint: "text",
  },
  json: { type: "boolean", description: "Print it as JSON" },
  ...addressArg,
} as const;

interface Wanted {
  readonly name: string;
  readonly duration: string;
  readonly why: string;
}

/** What to begin, for how long and why. Throws a UsageError with `needs`, or for what is no duration. */
export function readWanted(
  given: { readonly [Field in keyof Wanted]: string | undefined },
  needs: string,
): Wanted {
  const { name, duration, why } = given;
  if (name === undefined || duration === undefined || why === undefined) {
    throw new UsageError(needs);
  }
  if (parseDuration(duration) === undefined) {
    throw new UsageError(`"${duration}" is no duration: write 30m, 2h or 7d.`);
  }
  return { name, duration, why };
}

interface InForce {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly until: number;
  readonly why: string;
}

/** Lists what is in force, or says `none`. */
export function listInForce<T extends InForce>(
  all: readonly T[],
  column: string,
  nameOf: (one: T) => string,
  none: string,
): ExitCode {
  if (all.length === 0) {
    print(none);
    return 0;
  }
  const head = ["id", column, "for another", "why"].map((text): Cell => ({
    text,
    tone: "soft",
  }));
  const rows = all.map((one): readonly Cell[] => [
    { text: one.id },
    { text: nameOf(one), tone: "strong" },
    { text: inWords(one.until - Date.now()) },
    { text: one.why },
  ]);
  alignColumns([head, ...rows]).forEach(print);
  return 0;
}
