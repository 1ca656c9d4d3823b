import { pino, type Logger } from "pino";
import { openLogOutput } from "../core/log-output.ts";

export type Log = Logger;

/** JSON lines on standard output; readable ones on a terminal. */
export function openLog(level: string): Log {
  const base = { part: "notes" };
  return process.stdout.isTTY
    ? pino({ level, base, transport: { target: "pino-pretty" } })
    : pino({ level, base }, openLogOutput(1, { sync: true }));
}
