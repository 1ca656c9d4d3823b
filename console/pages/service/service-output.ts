import { setTimeout as wait } from "node:timers/promises";
import { sentencesOf } from "../../../core/failure.ts";
import type { Runtime } from "../../../supervisor/runtimes/runtime.ts";
import type { Known, Output } from "./service-view.ts";

const SHOWN_LINES = 100;
const LONGEST_LINE = 1000;
const LOGS_WITHIN_MS = 2000;

/** The last lines of the process; a runtime that does not answer must not hold up the page. */
export async function readOutput(
  runtime: Runtime | undefined,
  { service }: Known,
): Promise<Output> {
  if (runtime === undefined || service === undefined) {
    return {
      kind: "none",
      why: "Nothing on this machine runs it for the supervisor, so its output is not here.",
    };
  }
  try {
    const lines = await Promise.race([
      runtime.logs(service.name, SHOWN_LINES),
      wait(LOGS_WITHIN_MS).then(() => null),
    ]);
    if (lines === null) {
      return {
        kind: "none",
        why: `Its output could not be read within ${LOGS_WITHIN_MS / 1000} s: hearth logs ${service.name} may wait longer.`,
      };
    }
    return {
      kind: "lines",
      lines: lines.map((line) =>
        line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)}…`,
      ),
    };
  } catch (error) {
    return {
      kind: "none",
      why: `Its output cannot be read: ${sentencesOf(error).join(" ")}`,
    };
  }
}
