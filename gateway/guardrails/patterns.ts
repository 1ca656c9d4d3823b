import { RE2JS } from "re2js";
import type { GuardrailPattern } from "../config/types.ts";
import type { LocalChecking } from "./guard.ts";

type Range = readonly [start: number, end: number];
type FindRanges = (text: string, from: number) => readonly Range[];

/** Finds words, and regular expressions by RE2, which is a hundred times slower, but has no expressions that take exponential time. */
export function patternsChecking(
  patterns: readonly GuardrailPattern[],
): LocalChecking {
  const compiled = patterns.map(({ source, isWord, ...finding }) => ({
    finding,
    find: isWord ? wordFinder(source) : expressionFinder(source),
  }));
  return {
    kind: "local",
    find: async (text, from) =>
      compiled.flatMap(({ finding, find }) =>
        find(text, from).map(([start, end]) => ({ start, end, ...finding })),
      ),
  };
}

function wordFinder(word: string): FindRanges {
  const expression = new RegExp(RegExp.escape(word), "giu");
  return (text, from) => {
    expression.lastIndex = from;
    const found: Range[] = [];
    for (let at = expression.exec(text); at; at = expression.exec(text)) {
      found.push([at.index, expression.lastIndex]);
    }
    return found;
  };
}

function expressionFinder(source: string): FindRanges {
  const expression = RE2JS.compile(source);
  return (text, from) => {
    const found: Range[] = [];
    const matcher = expression.matcher(text);
    let at = from;
    while (at < text.length && matcher.find(at)) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (end > start) {
        found.push([start, end]);
      }
      at = Math.max(end, at + 1);
    }
    return found;
  };
}
