import type { Caller } from "../access/callers.ts";
import { invalidParam } from "../http/errors.ts";
import type { Place } from "../runners/line.ts";
import type { CallBody } from "./body.ts";

/** Of calls without a priority. */
export const INTERACTIVE: Place = { batch: false, order: 0 };
const BATCH: Place = { batch: true, order: 0 };

/**
 * Where a call stands when it has to wait for a slot: that of its key (`metadata.priority`), which the call itself can lower
 * (`"priority": "batch"`) but not raise; or LiteLLM's number, the lowest first, among the calls of such keys.
 */
export function placeOf(body: CallBody, caller: Caller): Place {
  const asked = body["priority"];
  const own =
    caller.kind === "key" && caller.metadata["priority"] === "batch"
      ? BATCH
      : INTERACTIVE;
  if (asked === undefined || asked === null || asked === "interactive") {
    return own;
  }
  if (asked === "batch") {
    return BATCH;
  }
  if (typeof asked === "number" && Number.isSafeInteger(asked)) {
    return { ...own, order: asked };
  }
  throw invalidParam(
    "priority",
    "must be interactive, batch, or a whole number (the lowest is served first).",
  );
}
