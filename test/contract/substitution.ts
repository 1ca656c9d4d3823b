/**
 * Maps recorded values to those of the server under test: generated revision hashes and ids, and sequence tokens. They are
 * learned from their position in responses and substituted in later requests.
 */
export interface Substitution {
  readonly apply: (text: string) => string;
  /** Learns an opaque value, such as a bookmark. */
  readonly remember: (expected: string, actual: string) => void;
  /** Learns the values of two texts; returns why the texts differ, or undefined. */
  readonly differ: (expected: string, actual: string) => string | undefined;
}

const TOKEN = /\d+-g[A-Za-z0-9_-]{20,}|[0-9a-f]{32}|\{base\}|<[a-z]+>/g;
const SEQUENCE = "\\d+-[A-Za-z0-9_-]{20,}";
const HASH = "[0-9a-f]{32}";

export function newSubstitution(base: string): Substitution {
  const ours = new Map<string, string>();
  const recorded = new Map<string, string>();
  const opaque = new Map<string, string>();
  return {
    remember: (expected, actual) => {
      opaque.set(expected, actual);
    },
    apply: (text) => {
      let applied = text
        .replaceAll("{base}", base)
        .replace(TOKEN, (token) => ours.get(token) ?? token);
      for (const [expected, actual] of opaque) {
        applied = applied.replaceAll(expected, actual);
      }
      return applied;
    },
    differ: (expected, actual) => {
      if (expected === actual && !TOKEN.test(expected)) {
        return undefined;
      }
      TOKEN.lastIndex = 0;
      const tokens = [...expected.matchAll(TOKEN)].map(([token]) => token);
      const match = pattern(expected, tokens, base).exec(actual);
      if (match === null) {
        return `${show(expected)} became ${show(actual)}`;
      }
      for (const [index, token] of tokens.entries()) {
        const problem = learn(ours, recorded, token, match[index + 1]!);
        if (problem !== undefined) {
          return problem;
        }
      }
      return undefined;
    },
  };
}

function pattern(
  expected: string,
  tokens: readonly string[],
  base: string,
): RegExp {
  const literals = expected.split(TOKEN).map((part) => escapeText(part));
  const groups = tokens.map((token) => {
    if (token === "{base}") {
      return `(${escapeText(base)})`;
    }
    if (token.startsWith("<")) {
      return "(.*?)";
    }
    return token.includes("-") ? `(${SEQUENCE})` : `(${HASH})`;
  });
  return new RegExp(
    `^${literals.map((literal, index) => literal + (groups[index] ?? "")).join("")}$`,
    "s",
  );
}

function learn(
  ours: Map<string, string>,
  recorded: Map<string, string>,
  token: string,
  value: string,
): string | undefined {
  if (token === "{base}" || token.startsWith("<")) {
    return undefined;
  }
  if (token.includes("-")) {
    if (ours.get(token) === value) {
      return undefined;
    }
    // The opaque part of a sequence may differ; its number must not.
    ours.set(token, value);
    const [number] = token.split("-");
    return value.startsWith(`${number}-`)
      ? undefined
      : `sequence ${number} became ${value.split("-")[0]}`;
  }
  const known = ours.get(token) ?? value;
  const source = recorded.get(value) ?? token;
  if (known !== value || source !== token) {
    return `${token} was ${known} before and is ${value} now`;
  }
  ours.set(token, value);
  recorded.set(value, token);
  return undefined;
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function show(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
