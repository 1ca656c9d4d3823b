import { RE2JS } from "re2js";
import { Refusal } from "../refusal.ts";
import type { Budget } from "./work-budget.ts";

const MAX_PATTERNS = 20;
const MAX_PATTERN_LENGTH = 1000;

/** Compiles the `$regex` patterns of one selector. They are matched in linear time (RE2): a pattern such as `^(a+)+$` takes JavaScript's engine hours. */
export function openRegularExpressions(
  budget: Budget,
): (pattern: string) => (text: string) => boolean {
  let patterns = 0;
  return (pattern) => {
    patterns += 1;
    if (patterns > MAX_PATTERNS) {
      throw new Refusal(
        "bad_request",
        `A selector may hold at most ${MAX_PATTERNS} regular expressions.`,
      );
    }
    const compiled = compile(pattern);
    const stepsPerCharacter = compiled.programSize();
    return (text) =>
      budget.spend(text.length * stepsPerCharacter) && compiled.test(text);
  };
}

function compile(pattern: string): RE2JS {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new Refusal(
      "bad_request",
      `A regular expression may be at most ${MAX_PATTERN_LENGTH} characters long.`,
    );
  }
  try {
    return RE2JS.compile(pattern);
  } catch (failure) {
    throw new Refusal(
      "bad_request",
      `Invalid argument for $regex: ${JSON.stringify(pattern)} (${(failure as Error).message}); back-references and look-around are not supported.`,
    );
  }
}
