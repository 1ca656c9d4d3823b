import { dirname } from "node:path";
import { MINUTE_MS } from "../../core/duration.ts";
import { damagedFiles } from "./sqlite-file.ts";
import type { Context, Module } from "../context.ts";

const POLL_EVERY_MS = MINUTE_MS;
const FINGERPRINT = "history-damaged";

/** Reports a damaged and replaced history file until the old file is deleted. */
export function openDamagedHistoryModule({
  home,
  alarms,
}: Pick<Context, "home" | "alarms">): Module {
  let timer: NodeJS.Timeout | undefined;
  function report(): void {
    const newest = damagedFiles(home.history).at(-1);
    if (newest === undefined) {
      return alarms.clear(FINGERPRINT);
    }
    alarms.raise({
      fingerprint: FINGERPRINT,
      level: "warning",
      subject: "history",
      text: `the history of the supervisor was damaged and was replaced: earlier results, silences, paused checks and maintenance windows are lost. The damaged file is kept as ${newest}; delete it when no longer needed`,
      output: `check the disk of ${dirname(newest)}, too`,
      command: `rm -r ${newest}*`,
    });
  }
  return {
    start: () => {
      report();
      timer = setInterval(report, POLL_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
}
