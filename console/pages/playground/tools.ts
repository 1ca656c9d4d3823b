import { z } from "zod";

/** A tool as OpenAI's API takes it. */
export interface Tool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string | undefined;
    readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  };
}

const schema = z
  .array(
    z.looseObject({
      type: z.literal("function", 'must be "function"'),
      function: z.looseObject(
        {
          name: z
            .string("must be a text")
            .regex(
              /^[\w-]{1,64}$/,
              "must be 1 to 64 letters, digits, underscores or hyphens",
            ),
          description: z.string("must be a text").optional(),
          parameters: z
            .record(z.string(), z.unknown(), "must be an object")
            .optional(),
        },
        "must be an object",
      ),
    }),
    'must be a list such as [{"type": "function", "function": {"name": "clock"}}]',
  )
  .min(1, "must contain at least one tool");

type ReadTools =
  | { readonly kind: "read"; readonly tools: readonly Tool[] }
  | { readonly kind: "mistake"; readonly mistake: string };

/** Reads tools typed as JSON; a mistake is one sentence that names its place. Empty text is no tool. */
export function readTools(text: string): ReadTools {
  if (text.trim() === "") {
    return { kind: "read", tools: [] };
  }
  let typed: unknown;
  try {
    typed = JSON.parse(text);
  } catch (error) {
    return { kind: "mistake", mistake: syntaxMistake(text, error) };
  }
  const parsed = schema.safeParse(typed);
  if (parsed.success) {
    return { kind: "read", tools: parsed.data };
  }
  const [issue] = parsed.error.issues;
  const place = placeOf(issue?.path ?? []);
  return {
    kind: "mistake",
    mistake: `${place === "" ? "Tools" : `Tools: ${place}`} ${issue?.message ?? "is invalid"}.`,
  };
}

/** "[1].function.name", as it is written in programs. */
function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) =>
      typeof part === "number"
        ? `[${part}]`
        : `${at === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}

function syntaxMistake(text: string, error: unknown): string {
  const at = placeOfError(text, String(error));
  const lines = text.slice(0, at).split("\n");
  const place = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
  const found = text[at];
  return found === undefined
    ? `Tools: invalid JSON: it ends too early, at ${place}.`
    : `Tools: invalid JSON at ${place}: ${reasonIn(String(error), found)}.`;
}

/** JSON.parse names the position of most errors, but not of an unexpected token. */
function placeOfError(text: string, message: string): number {
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position !== undefined) {
    return Number(position);
  }
  // The text up to the token is only incomplete, every longer one has it.
  let [before, after] = [0, text.length];
  while (before < after) {
    const middle = Math.floor((before + after) / 2);
    if (hasUnexpectedToken(text.slice(0, middle + 1))) {
      after = middle;
    } else {
      before = middle + 1;
    }
  }
  return before;
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return String(error).startsWith("SyntaxError: Unexpected token");
  }
}

/** "Expected ',' or ']' after array element", "unexpected "w"". */
function reasonIn(message: string, found: string): string {
  const [, reason] =
    /^SyntaxError: (?!Unexpected token)(.*?)(?: in JSON)? at position/.exec(
      message,
    ) ?? [];
  return reason === undefined
    ? `unexpected ${JSON.stringify(found)}`
    : reason.charAt(0).toLowerCase() + reason.slice(1);
}
