import type { ReadVariable } from "../../core/config/references.ts";
import type { Reading } from "../../core/config/reading.ts";

interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/** A whole number from a variable; null when unset or invalid (with a problem). */
export function numberVariable(
  reading: Reading,
  read: ReadVariable,
  name: string,
  range: NumberRange,
): number | null {
  const value = read(name);
  return value === null ? null : readNumber(reading, name, value, range);
}

/** A whole number given as text under a `name` that the operator knows. */
export function readNumber(
  reading: Reading,
  name: string,
  value: string,
  { min, max }: NumberRange,
): number | null {
  const number = value.trim() === "" ? NaN : Number(value);
  if (Number.isInteger(number) && number >= min && number <= max) {
    return number;
  }
  reading.problems.push({
    file: null,
    line: null,
    path: name,
    message: `must be a whole number from ${min} to ${max}`,
  });
  return null;
}
