import { countValues, MAX_DEPTH } from "../../core/json-values.ts";
import { CallError } from "./errors.ts";

/** Several times the largest real bodies: embeddings of 300,000 token numbers. */
const MAX_VALUES = 1_000_000;

/** The number of values of a body. Throws 400 for one that is nested too deep, 413 for one with too many values. */
export function countBody(text: Uint8Array): number {
  const values = countValues(text, MAX_VALUES);
  switch (values) {
    case "too-deep":
      throw new CallError(
        "invalid_request",
        `The body is nested deeper than ${MAX_DEPTH} levels. Send a flatter one.`,
      );
    case "too-many":
      throw new CallError(
        "body_too_large",
        `The body has more than ${MAX_VALUES.toLocaleString("en")} values. Split it into several requests.`,
      );
    default:
      return values;
  }
}
