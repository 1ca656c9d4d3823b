import { RE2JS } from "re2js";
import type { z } from "zod";
import { textOf } from "../../core/failure.ts";
import { unknownName } from "../../core/config/problem.ts";
import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { itemPaths, readStrictly } from "./guardrail-reading.ts";
import {
  patternEntry,
  wordEntry,
  type patternsGuardrail,
} from "./guardrail-schema.ts";
import type { GuardrailPattern } from "./types.ts";

/** By LiteLLM's names. RE2 has no look-around: `\b` bounds numbers instead. */
const PREBUILT: Readonly<Record<string, string>> = {
  us_ssn: String.raw`\b\d{3}-\d{2}-\d{4}\b`,
  email: String.raw`\b[\w.%+-]{1,64}@[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,24}\b`,
  phone: String.raw`(\+\d{1,3}[ .-]?)?(\(\d{3}\)|\b\d{3})[ .-]?\d{3}[ .-]?\d{4}\b`,
  visa: String.raw`\b4\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b`,
  mastercard: String.raw`\b(5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b`,
  amex: String.raw`\b3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b`,
  aws_access_key: String.raw`\b(AKIA|ASIA)[0-9A-Z]{16}\b`,
  github_token: String.raw`\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})\b`,
};
const DEFAULT_FORMAT = "[{pattern_name}_REDACTED]";
const DEFAULT_TAG = "[KEYWORD_REDACTED]";

/** The patterns and words of a content filter, in the order written. */
export function readPatterns(
  reading: Reading,
  path: Path,
  settings: z.output<typeof patternsGuardrail>,
): readonly GuardrailPattern[] {
  const format = settings.pattern_redaction_format ?? DEFAULT_FORMAT;
  const patterns = [
    ...itemPaths(reading, [...path, "patterns"]).flatMap((item) =>
      readPattern(reading, item, format),
    ),
    ...itemPaths(reading, [...path, "blocked_words"]).flatMap((item) =>
      readWord(reading, item, settings.keyword_redaction_tag ?? DEFAULT_TAG),
    ),
  ];
  if (patterns.length === 0) {
    reading.problems.push(
      problemAt(reading, path, "`patterns` or `blocked_words` is required"),
    );
  }
  return patterns;
}

function readPattern(
  reading: Reading,
  path: Path,
  format: string,
): readonly GuardrailPattern[] {
  const entry = readStrictly(reading, path, patternEntry);
  if (entry === null) {
    return [];
  }
  const isPrebuilt = entry.pattern_type === "prebuilt";
  const field = isPrebuilt ? "pattern_name" : "pattern";
  const given = entry[field];
  const problem = (message: string) => {
    reading.problems.push(problemAt(reading, [...path, field], message));
    return [];
  };
  if (given === undefined) {
    return problem("is required");
  }
  const source = isPrebuilt ? prebuilt(given) : given;
  if (source === undefined) {
    return problem(unknownName("pattern", given, Object.keys(PREBUILT)));
  }
  try {
    if (RE2JS.compile(source).test("")) {
      return problem("must not match an empty text");
    }
  } catch (error) {
    return problem(
      `is not a regular expression of RE2, which has no back-references and no look-around: ${textOf(error)}`,
    );
  }
  const name = entry.name ?? entry.pattern_name ?? "pattern";
  return [
    {
      name,
      source,
      isWord: false,
      action: entry.action === "MASK" ? "mask" : "block",
      replacement: format.replaceAll("{pattern_name}", name.toUpperCase()),
    },
  ];
}

function prebuilt(name: string): string | undefined {
  return Object.hasOwn(PREBUILT, name) ? PREBUILT[name] : undefined;
}

/** Words are found in any case, as in LiteLLM. */
function readWord(
  reading: Reading,
  path: Path,
  replacement: string,
): readonly GuardrailPattern[] {
  const entry = readStrictly(reading, path, wordEntry);
  return entry === null
    ? []
    : [
        {
          name: entry.keyword,
          source: entry.keyword,
          isWord: true,
          action: entry.action === "MASK" ? "mask" : "block",
          replacement,
        },
      ];
}
