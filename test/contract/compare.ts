import { isTruncated, type RecordedAnswer } from "./recordings.ts";
import type { RawAnswer } from "./raw-request.ts";
import type { Substitution } from "./substitution.ts";

/** Members whose values differ from run to run, even on one server. */
const OPAQUE = new Set([
  "bookmark",
  "derived_key",
  "execution_time_ms",
  "instance_start_time",
  "iterations",
  "purge_seq",
  "ref",
  "salt",
  "session_id",
  "sizes",
  "uuid",
]);

const HEADERS = [
  "allow",
  "location",
  "www-authenticate",
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-allow-origin",
  "access-control-expose-headers",
  "access-control-max-age",
];

export interface CompareOptions {
  /** Members (by name) that are not looked at. */
  readonly ignore?: readonly string[];
  /** Entries of lists (values, or rows of these ids or keys) that are not expected. */
  readonly without?: readonly string[];
  readonly withHeaders?: boolean;
}

/** All differences between a recorded answer and the one at hand, each as one line. */
export function differences(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  substitution: Substitution,
  options: CompareOptions = {},
): string[] {
  const found: string[] = [];
  if (recorded.status !== answer.status) {
    return [
      `status ${recorded.status} became ${answer.status}: ${answer.text.slice(0, 300)}`,
    ];
  }
  if (options.withHeaders === true) {
    compareHeaders(recorded, answer, substitution, found);
  }
  compareBodies(recorded, answer, substitution, options, found);
  return found;
}

function compareHeaders(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  substitution: Substitution,
  found: string[],
): void {
  const etag = recorded.headers.etag;
  // Entity tags of anything but documents are opaque.
  const names =
    etag !== undefined && /^"\d+-/.test(etag) ? [...HEADERS, "etag"] : HEADERS;
  for (const name of names) {
    const expected = recorded.headers[name];
    const actual = answer.headers[name];
    if (expected === undefined || typeof actual !== "string") {
      if (expected !== actual) {
        found.push(`header ${name}: ${expected} became ${String(actual)}`);
      }
      continue;
    }
    const problem = substitution.differ(expected, actual);
    if (problem !== undefined) found.push(`header ${name}: ${problem}`);
  }
  const type = (value: string | undefined): string =>
    (value ?? "").split(";")[0]!;
  const [expected, actual] = [
    type(recorded.headers["content-type"]),
    type(answer.headers["content-type"]),
  ];
  if (answer.status !== 304 && expected !== actual) {
    found.push(`content type ${expected} became ${actual}`);
  }
}

function compareBodies(
  recorded: RecordedAnswer,
  answer: RawAnswer,
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  const { body } = recorded;
  if (body === undefined || body.length === 0) {
    if (answer.text.trim() !== "") found.push("a body came where none was");
    return;
  }
  if (recorded.end === "client-closed") {
    const text = body.raw ?? body.text ?? linesText(body.lines);
    compareFeeds(text, answer.text, substitution, options, found);
  } else if (body.json !== undefined) {
    const actual = parsed(answer.text, found);
    compareValues(body.json, actual, "body", substitution, options, found);
  } else if (body.lines !== undefined) {
    compareFeeds(
      linesText(body.lines),
      answer.text,
      substitution,
      options,
      found,
    );
  } else if (body.text !== undefined && typeof body.text === "string") {
    if (recorded.headers["content-type"]?.startsWith("multipart/") === true) {
      const parts = (text: string): string[] =>
        text.split("\r\n").filter((line) => line.startsWith("{"));
      compareLists(
        parts(body.text),
        parts(answer.text),
        substitution,
        options,
        found,
      );
      return;
    }
    const problem = substitution.differ(body.text, answer.text);
    if (problem !== undefined) found.push(problem);
  }
}

function linesText(lines: readonly unknown[] | undefined): string {
  return (lines ?? [])
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .join("\n");
}

/** Rows of a feed; heartbeats fall anywhere between them. */
function compareFeeds(
  expected: string,
  actual: string,
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  const rows = (text: string): string[] =>
    text.split("\n").filter((line) => line !== "");
  compareLists(rows(expected), rows(actual), substitution, options, found);
}

function compareLists(
  expected: readonly string[],
  actual: readonly string[],
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  const values = (lines: readonly string[]): unknown[] =>
    lines.map(
      (line) =>
        (line.startsWith("{") && line.endsWith("}")
          ? JSON.parse(line)
          : line) as unknown,
    );
  compareValues(
    values(expected),
    values(actual),
    "row",
    substitution,
    options,
    found,
  );
}

function parsed(text: string, found: string[]): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    found.push(`no JSON: ${text.slice(0, 200)}`);
    return undefined;
  }
}

function compareValues(
  expected: unknown,
  actual: unknown,
  path: string,
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  if (typeof expected === "string" && typeof actual === "string") {
    if (isFilled(expected, actual)) return;
    const problem = substitution.differ(expected, actual);
    if (problem !== undefined) found.push(`${path}: ${problem}`);
    return;
  }
  if (isTruncated(expected)) {
    const { length } = expected.$truncated;
    if (typeof actual !== "string" || actual.length !== length) {
      found.push(`${path}: a string of ${length} became ${short(actual)}`);
    }
    return;
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    expected = expected.filter((entry) => !isLeftOut(entry, options.without));
    compareEntries(
      expected as unknown[],
      actual,
      path,
      substitution,
      options,
      found,
    );
    return;
  }
  if (isObject(expected) && isObject(actual)) {
    for (const name of new Set([
      ...Object.keys(expected),
      ...Object.keys(actual),
    ])) {
      compareMember(expected, actual, name, path, substitution, options, found);
    }
    return;
  }
  if (!Object.is(expected, actual) && !(expected === 0 && actual === 0)) {
    found.push(`${path}: ${short(expected)} became ${short(actual)}`);
  }
}

/** A long string that was shortened in the recording of its writing, and therefore filled when it was written here. */
function isFilled(expected: string, actual: string): boolean {
  const HEAD = 32;
  return (
    actual.length > HEAD &&
    actual.length === expected.length &&
    actual.slice(0, HEAD) === expected.slice(0, HEAD) &&
    /^x+$/.test(actual.slice(HEAD))
  );
}

function isLeftOut(
  entry: unknown,
  without: readonly string[] | undefined,
): boolean {
  const name = isObject(entry) ? (entry.id ?? entry.key) : entry;
  return typeof name === "string" && without?.includes(name) === true;
}

function compareEntries(
  expected: readonly unknown[],
  actual: readonly unknown[],
  path: string,
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  if (expected.length !== actual.length) {
    found.push(
      `${path}: ${expected.length} entries became ${actual.length}: ${short(expected)} / ${short(actual)}`,
    );
    return;
  }
  for (const [index, each] of expected.entries()) {
    compareValues(
      each,
      actual[index],
      `${path}[${index}]`,
      substitution,
      options,
      found,
    );
  }
}

function compareMember(
  expected: Record<string, unknown>,
  actual: Record<string, unknown>,
  name: string,
  path: string,
  substitution: Substitution,
  options: CompareOptions,
  found: string[],
): void {
  if (options.ignore?.includes(name) === true) return;
  if (OPAQUE.has(name)) {
    if (typeof expected[name] !== typeof actual[name]) {
      found.push(
        `${path}.${name}: ${short(expected[name])} became ${short(actual[name])}`,
      );
    }
    learnOpaque(name, expected[name], actual[name], substitution);
    return;
  }
  compareValues(
    expected[name],
    actual[name],
    `${path}.${name}`,
    substitution,
    options,
    found,
  );
}

/** Values that may be anything, but come back in later requests. */
function learnOpaque(
  name: string,
  before: unknown,
  now: unknown,
  substitution: Substitution,
): void {
  if (typeof before !== "string" || typeof now !== "string") return;
  if (name === "bookmark" && before !== "nil") {
    substitution.remember(before, now);
  }
  if (name === "purge_seq") substitution.differ(before, now);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
