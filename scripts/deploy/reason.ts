import { ConfigRefused } from "../../infra/config.ts";

/** What went wrong, for the operator: every mistake of a configuration, and of the engine's long report the line that says it. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof ConfigRefused) return text;
  const said = /^\s*error: (?!update failed|preview failed)(.+)$/m.exec(text);
  if (said?.[1] !== undefined) return said[1];
  const [first = text] = text.split("\n");
  // All that the command's wrapper knows is the exit code.
  return first.startsWith("code:")
    ? "the engine stopped; what failed is named above."
    : first;
}
