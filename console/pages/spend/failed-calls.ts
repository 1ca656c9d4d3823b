import type { Period } from "../../../supervisor/reports/period.ts";
import { callsHref } from "../calls/calls-view.ts";
import type { Dimension } from "./spend-choice.ts";

/** The address of all failed calls of a period; null without any. */
export function allFailedCalls(
  { from, until }: Period,
  failed: number,
): string | null {
  return failed === 0 ? null : callsHref({ status: "failure", from, until });
}

/** The address of the failed calls of a row; null without any, and where the ledger cannot be filtered by the row. */
export function failedCallsOf(
  by: Dimension,
  { id, failed }: { readonly id: string; readonly failed: number },
  { from, until }: Period,
): string | null {
  if (failed === 0 || id === "") {
    return null;
  }
  switch (by) {
    case "model":
    case "key":
    case "user":
    case "team":
      return callsHref({ status: "failure", from, until, [by]: id });
    case "day":
      return callsHref({ status: "failure", from: id, until: id });
    case "provider":
      return null;
  }
}
