import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";

/** Instructions of a compiled pattern; the time of a match grows with them and with the text. */
const MAX_PROGRAM_SIZE = 500;
const MAX_HEADER_LENGTH = 256;
const MAX_ADDRESS_LENGTH = 2_048;
const MAX_PATTERN_LENGTH = 500;

const compiled = new LRUCache<string, RE2JS>({ max: 1_000 });

/**
 * What is wrong with a pattern, as the rest of a sentence; null: nothing. Patterns are matched in linear time (RE2), since
 * team admins write them and any caller chooses the text.
 */
export function faultOfPattern(pattern: string): string | null {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `has more than ${MAX_PATTERN_LENGTH} characters`;
  }
  try {
    return RE2JS.compile(pattern).programSize() > MAX_PROGRAM_SIZE
      ? "is too large: use fewer repetitions"
      : null;
  } catch {
    return "is not a regular expression of RE2, which has no look-around and no back-references";
  }
}

/** Whether a valid pattern occurs in a header, written `User-Agent: VALUE`; of a long header the start is read. */
export function matchesHeader(pattern: string, header: string): boolean {
  const start = header.slice(0, MAX_HEADER_LENGTH);
  return expressionOf(pattern).matcher(start).find();
}

/** Whether a valid pattern matches a whole address: one that only begins like a permitted address may lead anywhere. */
export function matchesAddress(pattern: string, address: string): boolean {
  return (
    address.length <= MAX_ADDRESS_LENGTH &&
    expressionOf(pattern).matches(address)
  );
}

function expressionOf(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  const expression = known ?? RE2JS.compile(pattern);
  if (known === undefined) {
    compiled.set(pattern, expression);
  }
  return expression;
}
