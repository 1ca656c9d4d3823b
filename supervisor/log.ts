import { openSync } from "node:fs";
import { pino, type Logger } from "pino";
import { openLogOutput } from "../core/log-output.ts";
import type { CheckState } from "./checks/state.ts";
import type { CheckView } from "./checks/watched.ts";
import type { ServiceState, ServiceView } from "./runtimes/runtime.ts";

/** JSON lines on standard output, pretty on a terminal. */
export function openLog(): Logger {
  if (process.stdout.isTTY) {
    return pino({
      transport: {
        target: "pino-pretty",
        options: { ignore: "pid,hostname" },
      },
    });
  }
  return openLogFile(1);
}

/** JSON lines in a file, or on an open file descriptor. */
export function openLogFile(target: string | number): Logger {
  const fd = typeof target === "number" ? target : openSync(target, "a", 0o600);
  const now = () => new Date().toISOString();
  return pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime },
    openLogOutput(fd, { sync: true, now }),
  );
}

export interface Reporter {
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
}

const TROUBLED: readonly ServiceState[] = [
  "backing-off",
  "gave-up",
  "ended",
  "absent",
];

/** One line per change that matters to an operator. */
export function reportTo(log: Logger): Reporter {
  return {
    onService: ({ name, state, pid, reason, tookMs }, before) => {
      if (state === before) {
        return;
      }
      const level = TROUBLED.includes(state) ? "error" : "info";
      log[level]({ service: name, state, pid, reason, tookMs }, "service");
    },
    onCheck: ({ name, state, latest }) => {
      const level = state === "down" ? "error" : "info";
      log[level]({ check: name, state, saw: latest?.text }, "check");
    },
    onNotice: (sentence) => log.warn(sentence),
  };
}
