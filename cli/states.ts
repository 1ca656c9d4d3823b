import type { CheckState } from "../supervisor/checks/state.ts";
import type { ServiceState } from "../supervisor/runtimes/runtime.ts";
import { stateWord } from "../core/words.ts";
import type { Cell, Tone } from "./terminal.ts";

/** A service's state as sign, word and colour: colour is never the only signal. */
export function serviceCell(state: ServiceState): Cell {
  switch (state) {
    case "running":
      return cell("●", state, "ok");
    case "waiting":
      return cell("○", state, "soft");
    case "starting":
      return cell("◐", state, "warn");
    case "backing-off":
      return cell("✕", state, "bad");
    case "gave-up":
      return cell("✕", state, "bad");
    case "stopping":
      return cell("◑", state, "soft");
    case "stopped":
      return cell("○", state, "soft");
    case "ended":
      return cell("✕", state, "bad");
    case "absent":
      return cell("✕", state, "bad");
    case "unknown":
      return cell("▲", state, "warn");
  }
}

export function checkCell(state: CheckState, inhibitedBy: string | null): Cell {
  if (inhibitedBy !== null && state !== "up") {
    return cell("‖", `waiting for ${inhibitedBy}`, "soft");
  }
  switch (state) {
    case "new":
      return cell("○", state, "soft");
    case "up":
      return cell("●", state, "ok");
    case "pending":
      return cell("▲", state, "warn");
    case "down":
      return cell("✕", state, "bad");
    case "maintenance":
      return cell("‖", state, "soft");
    case "paused":
      return cell("‖", state, "soft");
  }
}

function cell(shape: string, state: string, tone: Tone): Cell {
  return { text: `${shape} ${stateWord(state)}`, tone };
}
