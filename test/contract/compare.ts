import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../../core/json.ts";
import {
  isTruncated,
  type RecordedAnswer,
  type RecordedBody,
} from "./recordings.ts";
import type { RawAnswer } from "./raw-request.ts";
import type { Substitution } from "./substitution.ts";
import { isTolerated, type Tolerance } from "./tolerated.ts";

interface CompareOptions {
  readonly tolerance: Tolerance;
  /** Names of members that are not compared. */
  readonly ignore?: readonly string[];
  /** List entries (values, or rows with these ids or keys) that are not expected. */
  readonly without?: readonly string[];
}

interface Comparison extends CompareOptions {
  readonly substitution: Substitution;
  readonly found: string[];
  /** Entries of `ignore` and `without` that were necessary. */
  readonly needed: Set<string>;
}

/** Returns all differences between a recorded response and the actual one, as one line each. */
export function differences(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  substitution: Substitution,
  options: CompareOptions,
): string[] {
  if (recorded.status !== answer.status) {
    return [
      `status ${recorded.status} became ${answer.status}: ${answer.text.slice(0, 300)}`,
    ];
  }
  const found: string[] = [];
  const needed = new Set<string>();
  const comparison = { ...options, substitution, found, needed };
  compareHeaders(recorded, answer, comparison);
  compareBodies(recorded, answer, comparison);
  for (const name of [...(options.ignore ?? []), ...(options.without ?? [])]) {
    if (!needed.has(name)) {
      found.push(`"${name}" is ignored unnecessarily`);
    }
  }
  return found;
}

function compareHeaders(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  { substitution, tolerance, found }: Comparison,
): void {
  const names = new Set([
    ...Object.keys(recorded.headers),
    ...Object.keys(answer.headers),
  ]);
  for (const name of names) {
    const expected = recorded.headers[name];
    const given = answer.headers[name];
    const actual = Array.isArray(given) ? given.join(", ") : given;
    if (expected === actual) {
      continue;
    }
    const problem =
      expected === undefined || typeof actual !== "string"
        ? `${expected} became ${String(actual)}`
        : substitution.differ(expected, actual);
    if (problem === undefined) {
      continue;
    }
    const header = `header ${isOpaqueTag(name, expected) ? "etag of no document" : name}`;
    if (isTolerated(header)) {
      tolerance.use(header);
    } else {
      found.push(`${header}: ${problem}`);
    }
  }
}

function isOpaqueTag(name: string, value: string | undefined): boolean {
  return name === "etag" && (value === undefined || !/^"\d+-/.test(value));
}

function compareBodies(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  comparison: Comparison,
): void {
  const { found } = comparison;
  const { body } = recorded;
  if (body === undefined || body.length === 0) {
    if (answer.text !== "") {
      found.push("unexpected body");
    }
    return;
  }
  if (recorded.end === "client-closed") {
    const text = body.raw ?? body.text ?? linesText(body.lines);
    compareFeeds(text, answer.text, comparison);
  } else if (body.json !== undefined) {
    compareValues(body.json, parsed(answer.text, found), "body", comparison);
  } else if (body.lines !== undefined) {
    compareFeeds(linesText(body.lines), answer.text, comparison);
  } else {
    compareTexts(recorded, body, answer, comparison);
  }
}

function compareTexts(
  recorded: RecordedAnswer,
  { text }: RecordedBody,
  answer: RawAnswer,
  comparison: Comparison,
): void {
  if (recorded.headers["content-type"]?.startsWith("multipart/") !== true) {
    compareValues(text, answer.text, "text", comparison);
    return;
  }
  const lines = (of: string, headers: RawAnswer["headers"]): string[] => {
    const boundary = /boundary="?([^";]+)/.exec(headers["content-type"] ?? "");
    return of.replaceAll(boundary?.[1] ?? "", "boundary").split("\r\n");
  };
  compareLists(
    lines(text ?? "", recorded.headers),
    lines(answer.text, answer.headers),
    comparison,
  );
}

function linesText(lines: readonly unknown[] | undefined): string {
  return (lines ?? [])
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .join("\n");
}

/** Compares the rows of a feed; heartbeats may occur anywhere between them. */
function compareFeeds(
  expected: string,
  actual: string,
  comparison: Comparison,
): void {
  const blank = (text: string): number => text.split("\n\n").length;
  if (blank(expected) !== blank(actual)) {
    comparison.tolerance.use("heartbeats");
  }
  const rows = (text: string): string[] =>
    text.split("\n").filter((line) => line !== "");
  compareLists(rows(expected), rows(actual), comparison);
}

function compareLists(
  expected: readonly string[],
  actual: readonly string[],
  comparison: Comparison,
): void {
  const values = (lines: readonly string[]): unknown[] =>
    lines.map(
      (line) =>
        (line.startsWith("{") && line.endsWith("}")
          ? JSON.parse(line)
          : line) as unknown,
    );
  compareValues(values(expected), values(actual), "row", comparison);
}

function parsed(text: string, found: string[]): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    found.push(`invalid JSON: ${text.slice(0, 200)}`);
    return undefined;
  }
}

function compareValues(
  expected: unknown,
  actual: unknown,
  path: string,
  comparison: Comparison,
): void {
  const { substitution, tolerance, found } = comparison;
  if (typeof expected === "string" && typeof actual === "string") {
    if (isFilled(expected, actual)) {
      tolerance.use("filled strings");
      return;
    }
    const problem = substitution.differ(expected, actual);
    if (problem !== undefined) {
      found.push(`${path}: ${problem}`);
    }
    return;
  }
  if (isTruncated(expected)) {
    tolerance.use("shortened strings");
    const { length } = expected.$truncated;
    if (typeof actual !== "string" || actual.length !== length) {
      found.push(`${path}: a string of ${length} became ${short(actual)}`);
    }
    return;
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    const left = expected.filter((entry) => !isLeftOut(entry, comparison));
    compareEntries(left, actual, path, comparison);
    return;
  }
  if (isRecord(expected) && isRecord(actual)) {
    for (const name of new Set([
      ...Object.keys(expected),
      ...Object.keys(actual),
    ])) {
      compareMember(expected[name], actual[name], name, path, comparison);
    }
    return;
  }
  if (expected !== actual) {
    found.push(`${path}: ${short(expected)} became ${short(actual)}`);
  }
}

/** Whether a long string was shortened in the recorded write, and therefore padded in the replay. */
function isFilled(expected: string, actual: string): boolean {
  const HEAD = 32;
  return (
    actual !== expected &&
    actual.length > HEAD &&
    actual.length === expected.length &&
    actual.slice(0, HEAD) === expected.slice(0, HEAD) &&
    /^x+$/.test(actual.slice(HEAD))
  );
}

function isLeftOut(
  entry: unknown,
  { without = [], needed }: Comparison,
): boolean {
  const name = isRecord(entry) ? (entry.id ?? entry.key) : entry;
  if (typeof name !== "string" || !without.includes(name)) {
    return false;
  }
  needed.add(name);
  return true;
}

function compareEntries(
  expected: readonly unknown[],
  actual: readonly unknown[],
  path: string,
  comparison: Comparison,
): void {
  if (expected.length !== actual.length) {
    comparison.found.push(
      `${path}: ${expected.length} entries became ${actual.length}: ${short(expected)} / ${short(actual)}`,
    );
    return;
  }
  for (const [index, each] of expected.entries()) {
    compareValues(each, actual[index], `${path}[${index}]`, comparison);
  }
}

function compareMember(
  expected: unknown,
  actual: unknown,
  name: string,
  path: string,
  comparison: Comparison,
): void {
  const { ignore, needed, tolerance, substitution, found } = comparison;
  if (ignore?.includes(name) === true) {
    if (!isDeepStrictEqual(expected, actual)) {
      needed.add(name);
    }
    return;
  }
  const member = `member ${name}`;
  if (!isTolerated(member)) {
    compareValues(expected, actual, `${path}.${name}`, comparison);
    return;
  }
  if (!isDeepStrictEqual(expected, actual)) {
    tolerance.use(member);
  }
  if (typeof expected !== typeof actual) {
    found.push(`${path}.${name}: ${short(expected)} became ${short(actual)}`);
  }
  learnOpaque(name, expected, actual, substitution);
}

/** Remembers opaque values that clients send back in later requests. */
function learnOpaque(
  name: string,
  before: unknown,
  now: unknown,
  substitution: Substitution,
): void {
  if (typeof before !== "string" || typeof now !== "string") {
    return;
  }
  if (name === "bookmark" && before !== "nil") {
    substitution.remember(before, now);
  }
  if (name === "purge_seq") {
    substitution.differ(before, now);
  }
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
