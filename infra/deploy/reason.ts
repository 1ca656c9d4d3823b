import { ConfigRefused } from "../config/config.ts";

/** What went wrong, for the operator: every mistake of a configuration, and of the engine's long report the line that says it. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof ConfigRefused) {
    return text;
  }
  const said = /^\s*error: (?!update failed|preview failed)(.+)$/m.exec(text);
  if (said?.[1] !== undefined) {
    return said[1];
  }
  const [first = text] = text.split("\n");
  return first.startsWith("code:") ? whatTheEngineComplained(text) : first;
}

/** The last line on the standard error of a command that ended with a code; the wrapper's message holds all of it. */
function whatTheEngineComplained(text: string): string {
  const complaint = /^ stderr: ([^]*?)^ err\?: /m.exec(text)?.[1];
  const line = complaint?.trimEnd().split("\n").at(-1)?.trim();
  return line === undefined || line === ""
    ? "the engine stopped; see the failed operation above."
    : line;
}
