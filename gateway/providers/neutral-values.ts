import { isDeepStrictEqual } from "node:util";
import type { CallBody } from "../calls/body.ts";

/** Parameters, each with the values that change nothing. */
export type NeutralValues = ReadonlyMap<string, readonly unknown[]>;

export function isNeutral(
  parameters: NeutralValues,
  name: string,
  given: unknown,
): boolean {
  const neutral = parameters.get(name) ?? [];
  return neutral.some(
    (value) => value === given || isDeepStrictEqual(value, given),
  );
}

/** Those of the parameters that a body gives other values. */
export function changedIn(
  body: CallBody,
  parameters: NeutralValues,
): readonly string[] {
  return [...parameters.keys()].filter(
    (name) => body[name] != null && !isNeutral(parameters, name, body[name]),
  );
}
