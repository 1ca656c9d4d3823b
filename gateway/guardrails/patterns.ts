import { RE2JS } from "re2js";
import type { GuardrailPattern } from "../config/types.ts";
import type { Checking, Finding } from "./guard.ts";

/** Finds regular expressions in linear time (RE2), whatever the expression and the text. */
export function patternsChecking(
  patterns: readonly GuardrailPattern[],
): Checking {
  const compiled = patterns.map((pattern) => ({
    pattern,
    expression: RE2JS.compile(pattern.source),
  }));
  return {
    kind: "local",
    find: (text, from) =>
      Promise.resolve(
        compiled.flatMap(({ pattern, expression }) =>
          matches(pattern, expression, text, from),
        ),
      ),
  };
}

function matches(
  { name, action, replacement }: GuardrailPattern,
  expression: RE2JS,
  text: string,
  from: number,
): readonly Finding[] {
  const found: Finding[] = [];
  const matcher = expression.matcher(text);
  let at = from;
  while (at < text.length && matcher.find(at)) {
    const [start, end] = [matcher.start(), matcher.end()];
    if (end > start) {
      found.push({ start, end, name, action, replacement });
    }
    at = Math.max(end, at + 1);
  }
  return found;
}
