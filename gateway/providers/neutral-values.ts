import { isDeepStrictEqual } from "node:util";
import type { CallBody } from "../calls/body.ts";

/** Parameters, each with the values that change nothing. */
export type NeutralValues = ReadonlyMap<string, readonly unknown[]>;

/** Those of the parameters that a body gives other values. */
export function changedIn(
  body: CallBody,
  parameters: NeutralValues,
): readonly string[] {
  return [...parameters]
    .filter(
      ([name, neutral]) =>
        body[name] != null &&
        !neutral.some((value) => isDeepStrictEqual(value, body[name])),
    )
    .map(([name]) => name);
}
