import { resolveWithin } from "../../../core/resolve-within.ts";
import { sentencesOf } from "../../../core/failure.ts";
import type { Runtime } from "../../../supervisor/runtimes/runtime.ts";
import type { Known, Output } from "./service-facts.ts";

const SHOWN_LINES = 200;
/** A filter looks through this many of the latest lines. */
const SEARCHED_LINES = 5000;
const LOGS_WITHIN_MS = 2000;

/** The latest lines of the process that contain `filter`; a runtime that does not respond must not delay the page. */
export async function readOutput(
  runtime: Runtime | undefined,
  { check, service }: Known,
  filter: string,
): Promise<Output> {
  if (service === undefined && check?.service != null) {
    return { kind: "none", why: "Logs are on the pages of its pods." };
  }
  if (runtime === undefined || service === undefined) {
    return {
      kind: "none",
      why: "Logs are unavailable: this supervisor does not run the service.",
    };
  }
  try {
    const lines = await resolveWithin(
      runtime.logs(service.name, filter === "" ? SHOWN_LINES : SEARCHED_LINES),
      LOGS_WITHIN_MS,
    );
    if (lines === undefined) {
      return {
        kind: "none",
        why: `Logs could not be read within ${LOGS_WITHIN_MS / 1000} s. Run \`hearth logs ${service.name}\` to wait longer.`,
      };
    }
    return {
      kind: "lines",
      lines: lines
        .filter((line) => line.toLowerCase().includes(filter.toLowerCase()))
        .slice(-SHOWN_LINES),
    };
  } catch (error) {
    return {
      kind: "none",
      why: `Logs are unavailable: ${sentencesOf(error).join(" ")}`,
    };
  }
}
