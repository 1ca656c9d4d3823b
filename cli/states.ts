import type { CheckState } from "../supervisor/checks/state.ts";
import type { ServiceState } from "../supervisor/runtimes/runtime.ts";
import type { Cell, Tone } from "./terminal.ts";

/** A service's state as sign, word and colour: colour is never the only signal. */
export function serviceCell(state: ServiceState): Cell {
  switch (state) {
    case "running":
      return cell("●", "up", "ok");
    case "waiting":
      return cell("○", "waiting", "soft");
    case "starting":
      return cell("◐", "starting", "warn");
    case "backing-off":
      return cell("✕", "restarting", "bad");
    case "gave-up":
      return cell("✕", "gave up", "bad");
    case "stopping":
      return cell("◑", "stopping", "soft");
    case "stopped":
      return cell("○", "stopped", "soft");
    case "ended":
      return cell("✕", "ended", "bad");
    case "absent":
      return cell("✕", "absent", "bad");
    case "unknown":
      return cell("▲", "unknown", "warn");
  }
}

export function checkCell(state: CheckState, inhibitedBy: string | null): Cell {
  if (inhibitedBy !== null && state !== "up") {
    return cell("‖", `waiting for ${inhibitedBy}`, "soft");
  }
  switch (state) {
    case "new":
      return cell("○", "no result yet", "soft");
    case "up":
      return cell("●", "up", "ok");
    case "pending":
      return cell("▲", "pending", "warn");
    case "down":
      return cell("✕", "down", "bad");
    case "maintenance":
      return cell("‖", "maintenance", "soft");
    case "paused":
      return cell("‖", "paused", "soft");
  }
}

function cell(shape: string, word: string, tone: Tone): Cell {
  return { text: `${shape} ${word}`, tone };
}
