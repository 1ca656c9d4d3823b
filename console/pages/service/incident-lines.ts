import {
  lastedInWords,
  levelInWords,
  periodInWords,
} from "../../../supervisor/checks/incident-words.ts";
import type { Incident } from "../../../supervisor/checks/incidents.ts";
import { lookOfIncident } from "../incident-look.ts";

const MAX_INCIDENTS = 20;

/** The latest incidents in lines, and how many more there are. */
export function viewIncidents(
  incidents: readonly Incident[],
  timeZone: string,
) {
  return {
    incidents: incidents
      .slice(0, MAX_INCIDENTS)
      .map((incident) => viewIncident(incident, timeZone)),
    moreIncidents: Math.max(0, incidents.length - MAX_INCIDENTS),
  };
}

function viewIncident(incident: Incident, timeZone: string) {
  const { from, until, reason } = incident;
  return {
    look: lookOfIncident(incident),
    word: levelInWords(incident),
    period: periodInWords(from, until, timeZone),
    lasted: lastedInWords(incident),
    reason: reason ?? "",
  };
}
