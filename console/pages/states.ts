import type { CheckView } from "../../supervisor/checks/watched.ts";
import { DAY_MS, inWords } from "../../core/duration.ts";
import { stateWord } from "../../core/words.ts";
import type { ServiceState } from "../../supervisor/runtimes/runtime.ts";
import type { ServiceStatus } from "../../supervisor/status.ts";
import type { Look } from "../../core/shapes.ts";

/** The state of a check, or of the service of the same name. */
export function stateOf(
  check: CheckView,
  service: ServiceStatus | undefined,
  at: number,
): { readonly look: Look; readonly word: string } {
  const ofService =
    service === undefined ? undefined : stateOfService(service, at);
  if (ofService !== undefined && ofService.look !== "ok") {
    return ofService;
  }
  if (check.inhibitedBy !== null && check.state !== "up") {
    return { look: "rest", word: `waiting for ${check.inhibitedBy}` };
  }
  switch (check.state) {
    case "up":
      return {
        look: "ok",
        word:
          at - check.since < DAY_MS
            ? `up for ${inWords(at - check.since)}`
            : "up",
      };
    case "new":
      return { look: "none", word: stateWord(check.state) };
    case "pending":
      return { look: "warn", word: stateWord(check.state) };
    case "down":
      return { look: "bad", word: `down for ${inWords(at - check.since)}` };
    case "maintenance":
    case "paused":
      return {
        look: "rest",
        word:
          check.note === null ? check.state : `${check.state}: ${check.note}`,
      };
  }
}

/** The state of a service; a running pod that is not ready gets no requests. */
export function stateOfService(
  { state, since, pod }: ServiceStatus,
  at: number,
): { readonly look: Look; readonly word: string } {
  if (state !== "running") {
    return { look: lookOfService(state), word: stateWord(state) };
  }
  return pod === undefined || pod.notReadySince === null
    ? { look: "ok", word: `up for ${inWords(at - since)}` }
    : {
        look: "warn",
        word: `not ready for ${inWords(at - pod.notReadySince)}`,
      };
}

function lookOfService(state: ServiceState): Look {
  switch (state) {
    case "running":
      return "ok";
    case "waiting":
    case "starting":
      return "warn";
    case "backing-off":
    case "gave-up":
    case "ended":
    case "absent":
      return "bad";
    case "unknown":
      return "none";
    case "stopping":
    case "stopped":
      return "rest";
  }
}
