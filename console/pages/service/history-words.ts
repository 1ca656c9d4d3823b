import type { Act, HistoryEntry } from "../../../supervisor/history/history.ts";
import type { Look } from "../../../core/shapes.ts";
import { moment, stateWord } from "../../../core/words.ts";

const acts: Readonly<
  Record<Act, { readonly look: Look; readonly text: string }>
> = {
  start: { look: "none", text: "started" },
  adopt: { look: "none", text: "found running and adopted" },
  stop: { look: "rest", text: "stopped" },
  restart: { look: "warn", text: "restarted after it ended" },
  asked: { look: "none", text: "operator action" },
  "restart-asked": { look: "none", text: "restarted by the operator" },
  heal: { look: "warn", text: "restarted by a heal rule" },
  alarm: { look: "bad", text: "alarm" },
  notice: { look: "none", text: "notice" },
  "alarm-over": { look: "ok", text: "alarm cleared" },
  "supervisor-start": { look: "none", text: "supervisor started" },
  "supervisor-stop": { look: "rest", text: "supervisor stopped" },
};

/** One line of the history: a state change with its cause, or an action with its reason. */
export function describeEntry(entry: HistoryEntry, timeZone: string) {
  const { kind, name, from, to, reason, at } = entry;
  const event =
    kind === "act" && to in acts
      ? acts[to as Act]
      : {
          look: lookOf(to),
          text: `${from === null ? "" : `${stateWord(from)} → `}${stateWord(to)}`,
        };
  return {
    ...event,
    kind,
    name,
    reason: reason ?? "",
    at: moment(at, timeZone),
  };
}

function lookOf(state: string): Look {
  switch (state) {
    case "up":
    case "running":
      return "ok";
    case "down":
    case "gave-up":
    case "backing-off":
    case "ended":
    case "absent":
      return "bad";
    case "pending":
    case "starting":
    case "waiting":
      return "warn";
    case "paused":
    case "maintenance":
    case "stopping":
    case "stopped":
      return "rest";
    default:
      return "none";
  }
}
