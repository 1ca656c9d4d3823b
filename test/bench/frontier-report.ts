import type { Frontier, Reading } from "./frontier.ts";
import { table } from "./report-table.ts";

/** The table of the frontier; nothing if it was not measured. */
export function describeFrontier(
  frontiers: readonly Frontier[],
): readonly string[] {
  const [first] = frontiers;
  return first === undefined
    ? []
    : [
        "Frontier: the most plain calls/s with p99, from the moment that a call is sent, within each bound:",
        "",
        table(
          ["target", ...first.readings.map(({ bound_ms }) => `${bound_ms} ms`)],
          frontiers.map(({ target, readings }) => [
            target,
            ...readings.map(readingText),
          ]),
        ),
        "",
      ];
}

function readingText({ calls_per_second: calls, at_least }: Reading): string {
  return calls === null ? "none" : `${at_least ? "≥ " : ""}${calls}`;
}
