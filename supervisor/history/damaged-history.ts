import { dirname } from "node:path";
import { movedAside } from "./sqlite-file.ts";
import type { Context, Module } from "../context.ts";

const LOOK_EVERY_MS = 60_000;
const FINGERPRINT = "history-damaged";

/** Reports a history file that was found damaged and replaced, until what was moved aside is deleted. */
export function openDamagedHistoryModule({
  home,
  alarms,
}: Pick<Context, "home" | "alarms">): Module {
  let timer: NodeJS.Timeout | undefined;
  function report(): void {
    const newest = movedAside(home.history).at(-1);
    if (newest === undefined) {
      return alarms.clear(FINGERPRINT);
    }
    alarms.raise({
      fingerprint: FINGERPRINT,
      level: "warning",
      subject: "history",
      text: `the supervisor's history was damaged and a new one was started: earlier results, open silences, paused checks and maintenance windows are no longer known. The damaged file is kept as ${newest}; delete it when it is of no more use`,
      output: `check the disk that holds ${dirname(newest)} as well`,
      command: `rm -r ${newest}*`,
    });
  }
  return {
    begin: () => {
      report();
      timer = setInterval(report, LOOK_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
}
