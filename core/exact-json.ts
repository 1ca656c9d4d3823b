/** Not declared by TypeScript. https://tc39.es/proposal-json-parse-with-source/ */
declare global {
  interface JSON {
    parse(
      text: string,
      reviver: (
        name: string,
        value: unknown,
        context: { readonly source?: string },
      ) => unknown,
    ): unknown;
    rawJSON(text: string): RawNumber;
    isRawJSON(value: unknown): value is RawNumber;
  }
}

/** Written by `JSON.stringify` with the digits that were read. */
interface RawNumber {
  readonly rawJSON: string;
}

/**
 * An integer that a number may round. To search the text for it is faster than to check each value while parsing, and ten times as
 * fast by its digits as by the comma or colon before it.
 */
const LONG_INTEGER = /[1-9]\d{15}(?<=[[:,]\s*-?\d{16})/;

/** Fields with data of tools: arguments and results in APIs that have them as JSON, not as text, and the values that a schema allows. */
const DATA_OF_TOOLS = new Set([
  "input",
  "args",
  "arguments",
  "response",
  "enum",
  "const",
]);

/**
 * As `JSON.parse`, but integers of 64 bits in data of tools, such as the ids of many services, are not rounded:
 * `JSON.stringify` writes the same digits. Other values are numbers.
 */
export function parseExactly(text: string): unknown {
  if (!LONG_INTEGER.test(text)) {
    return JSON.parse(text);
  }
  const value = parseArguments(text);
  roundOthers(value);
  return value;
}

/** The same for a text with nothing but arguments. */
export function parseArguments(text: string): unknown {
  return JSON.parse(text, keepDigits);
}

function keepDigits(
  _name: string,
  value: unknown,
  { source }: { readonly source?: string },
): unknown {
  return source !== undefined &&
    Number.isInteger(value) &&
    !Number.isSafeInteger(value) &&
    String(value) !== source
    ? JSON.rawJSON(source)
    : value;
}

function roundOthers(value: unknown): void {
  if (typeof value !== "object" || value === null) {
    return;
  }
  const members = value as Record<string, unknown>;
  for (const [name, member] of Object.entries(members)) {
    if (DATA_OF_TOOLS.has(name)) {
      continue;
    }
    if (JSON.isRawJSON(member)) {
      members[name] = Number(member.rawJSON);
    } else {
      roundOthers(member);
    }
  }
}
