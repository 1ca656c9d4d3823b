import { isDeepStrictEqual } from "node:util";
import type { CallBody } from "../calls/body.ts";

/** Values of parameters that change nothing, so that providers without the parameter need not have it. */
const NEUTRAL: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["n", 1],
  ["stop", []],
  ["temperature", 1],
  ["top_p", 1],
  ["presence_penalty", 0],
  ["frequency_penalty", 0],
  ["logit_bias", {}],
  ["logprobs", false],
  ["top_logprobs", 0],
  ["store", false],
  ["verbosity", "medium"],
  ["functions", []],
]);

export function isNeutral(name: string, given: unknown): boolean {
  const neutral = NEUTRAL.get(name);
  // -0 is the same as 0 here.
  return (
    neutral !== undefined &&
    (neutral === given || isDeepStrictEqual(neutral, given))
  );
}

/** Those of the parameters that a body gives other values. */
export function changedIn(
  body: CallBody,
  names: readonly string[],
): readonly string[] {
  return names.filter(
    (name) => body[name] != null && !isNeutral(name, body[name]),
  );
}
