import { parseRecord } from "../../../core/json.ts";
import { momentWithSeconds, shortened } from "../../../core/words.ts";
import type { Look } from "../../../core/shapes.ts";

/** A line of a log as a page shows it. */
interface LogLine {
  /** In the reader's zone; empty where the line has none. */
  readonly time: string;
  /** warn and bad: the line says so itself. */
  readonly look: Look;
  readonly text: string;
}

const MAX_LENGTH = 1000;
/** Of pino: the same in every line of a program. */
const UNSAID = new Set(["level", "time", "msg", "pid", "hostname", "part"]);
/** Of Postgres and most other programs: "2026-11-26 13:03:05.123 UTC". */
const LEADING_TIME =
  /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?) ?(?:UTC|Z)\s*/;

/** Reads pino's JSON lines and lines that start with a time in UTC; other lines stay as they are. */
export function readLogLine(line: string, timeZone: string): LogLine {
  const entry = line.startsWith("{") ? parseRecord(line) : null;
  if (entry !== null) {
    const { level, time, msg } = entry;
    const rest = Object.entries(entry)
      .filter(([name]) => !UNSAID.has(name))
      .map(([name, value]) => `${name}=${wordOf(value)}`);
    return {
      time: typeof time === "number" ? momentWithSeconds(time, timeZone) : "",
      look: lookOf(Number(level)),
      text: shortened(
        [...(typeof msg === "string" ? [msg] : []), ...rest].join(" "),
        MAX_LENGTH,
      ),
    };
  }
  const [lead, day, clock] = LEADING_TIME.exec(line) ?? [];
  const at = Date.parse(`${day}T${clock}Z`);
  const known = lead !== undefined && !Number.isNaN(at);
  return {
    time: known ? momentWithSeconds(at, timeZone) : "",
    look: /\b(?:FATAL|PANIC|ERROR):/.test(line) ? "bad" : "none",
    text: shortened(known ? line.slice(lead.length) : line, MAX_LENGTH),
  };
}

function wordOf(value: unknown): string {
  const { message } = Object(value) as { readonly message?: unknown };
  if (typeof message === "string") {
    return JSON.stringify(message);
  }
  return typeof value === "string" && /^\S+$/.test(value)
    ? value
    : JSON.stringify(value);
}

/** Levels of pino: https://getpino.io/#/docs/api?id=loggerlevels-object */
function lookOf(level: number): Look {
  if (level >= 50) {
    return "bad";
  }
  return level >= 40 ? "warn" : "none";
}
