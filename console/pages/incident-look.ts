import type { Look } from "../../core/shapes.ts";
import type { Incident } from "../../supervisor/checks/incidents.ts";

/** bad: down now; none: was down; warn: failures that were too few for that. */
export function lookOfIncident({ down, until }: Incident): Look {
  if (!down) {
    return "warn";
  }
  return until === null ? "bad" : "none";
}
