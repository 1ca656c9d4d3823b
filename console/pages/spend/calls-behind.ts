import type { Period } from "../../../supervisor/reports/period.ts";
import { callsHref, type CallChoice } from "../calls/call-choice.ts";
import type { Dimension } from "./spend-choice.ts";
import type { ColumnKey } from "./spend-table.ts";

/** Which calls a figure counts or adds up; figures of other columns lead nowhere. */
const STATUS_OF: Partial<Record<ColumnKey, CallChoice["status"]>> = {
  spend: "",
  requests: "",
  failed: "failure",
};

/** The address of the calls behind a figure of a whole period; null without any. */
export function callsBehind(
  column: ColumnKey,
  { from, until }: Pick<Period, "from" | "until">,
  figure: number,
): string | null {
  const status = STATUS_OF[column];
  return status === undefined || figure === 0
    ? null
    : callsHref({ status, from, until });
}

/** The address of the calls behind a figure of a row; null without any, and for the row of calls that have no such name. */
export function callsOfRow(
  by: Dimension,
  id: string,
  column: ColumnKey,
  figure: number,
  { from, until }: Pick<Period, "from" | "until">,
): string | null {
  const status = STATUS_OF[column];
  if (status === undefined || figure === 0 || id === "") {
    return null;
  }
  return by === "day"
    ? callsHref({ status, from: id, until: id })
    : callsHref({ status, from, until, [by]: id });
}
