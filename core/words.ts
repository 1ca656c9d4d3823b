import { DAY_MS, inWords } from "./duration.ts";
import { dateFormat, numberFormat } from "./formats.ts";

/** "$ 41.55"; below a cent with two significant digits: "$ 0.00034". Less than a millionth of a millionth is "$ 0.00". */
export function money(dollars: number): string {
  const size = Math.abs(dollars);
  if (size >= 0.01) {
    return `$ ${grouped(dollars, 2)}`;
  }
  if (size < 1e-12) {
    return `$ ${grouped(0, 2)}`;
  }
  const digits = Math.min(12, 1 - Math.floor(Math.log10(size)));
  return `$ ${dollars.toFixed(digits).replace(/0+$/, "")}`;
}

/** A value of an axis: "$ 20,000", "$ 2.5", "0". */
export function axisMoney(dollars: number): string {
  return dollars === 0 ? "0" : `$ ${ROUND.format(dollars)}`;
}

const ROUND = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

/** "18,204" */
export function grouped(value: number, digits: number = 0): string {
  return numberFormat(digits).format(value);
}

/** "1 call", "2,400 calls"; `many` is the plural if it is not `one` with an s. */
export function counted(
  count: number,
  one: string,
  many: string = `${one}s`,
): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** "No calls", "1 call", "2,400 calls": at the start of a title. */
export function countTitle(count: number, one: string): string {
  return count === 0 ? `No ${one}s` : counted(count, one);
}

/** "a", "a and b", "a, b and c"; empty for no names. */
export function listed(names: readonly string[]): string {
  return names.length < 2
    ? names.join("")
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** The first `maxLength` characters, with "…" if there are more. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** With its first letter in upper case. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const NAMES = /^(?:Anthropic|Gemini|Ollama|Postgres|Redis)\b/;

/** A sentence of the gateway after "hearth: "; names ("Postgres", "OpenAI") keep their capital. */
export function withoutCapital(sentence: string): string {
  return NAMES.test(sentence)
    ? sentence
    : sentence.replace(/^[A-Z](?=[a-z]*\b)/, (letter) => letter.toLowerCase());
}

/** "34 %", "0.4 %", "99.94 %"; anything less than 100 % is not rounded up to it, and nothing but 0 down to 0. */
export function percent(share: number): string {
  // A sum of fractions misses a whole number by its rounding errors. Adding 0 turns -0 into 0.
  const value = Number((share * 100).toFixed(9)) + 0;
  const size = Math.abs(value);
  if (size > 99 && size < 100) {
    return `${grouped(Math.sign(value) * Math.min(99.99, size), 2)} %`;
  }
  if (size > 0 && size < 0.05) {
    return value > 0 ? "< 0.1 %" : "> -0.1 %";
  }
  const isWhole = Number.isInteger(value) || size >= 9.95;
  return `${grouped(value, isWhole ? 0 : 1)} %`;
}

const STATE_WORDS: Readonly<Record<string, string>> = {
  new: "not checked yet",
  running: "up",
  "backing-off": "restarting",
  "gave-up": "gave up",
};

/** The word for a state of a check or service, the same in the CLI and on pages. */
export function stateWord(state: string): string {
  return STATE_WORDS[state] ?? state;
}

/** "21 Nov, 10:02" in the operator's zone. */
export function moment(at: number, timeZone: string): string {
  return dateFormat("en-GB", timeZone, MINUTES).format(at);
}

/** Half a year. */
const NEAR_MS = 182 * DAY_MS;

/** The same with the year where `at` is more than half a year from `now`: "21 Nov 2027, 10:02". */
export function momentFrom(now: number, at: number, timeZone: string): string {
  return dateFormat("en-GB", timeZone, yearFrom(now, at, MINUTES)).format(at);
}

/** The same with seconds: "21 Nov, 10:02:05". */
export function secondsFrom(now: number, at: number, timeZone: string): string {
  return dateFormat("en-GB", timeZone, yearFrom(now, at, SECONDS)).format(at);
}

function yearFrom(
  now: number,
  at: number,
  format: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormatOptions {
  return Math.abs(at - now) <= NEAR_MS
    ? format
    : { ...format, year: "numeric" };
}

/** "21 Nov, 10:02:05" in the operator's zone. */
export function momentWithSeconds(at: number, timeZone: string): string {
  return dateFormat("en-GB", timeZone, SECONDS).format(at);
}

const CLOCK: Intl.DateTimeFormatOptions = {
  hour: "2-digit",
  minute: "2-digit",
};
const MINUTES: Intl.DateTimeFormatOptions = {
  day: "numeric",
  month: "short",
  ...CLOCK,
};
const SECONDS: Intl.DateTimeFormatOptions = { ...MINUTES, second: "2-digit" };

/** "10:02" in the operator's zone. */
export function clock(at: number, timeZone: string): string {
  return dateFormat("en-GB", timeZone, CLOCK).format(at);
}

/** "2026-11-21": the day in the operator's zone. */
export function dayIn(timeZone: string, at: number): string {
  return dateFormat("sv-SE", timeZone).format(at);
}

/** Whether it is a day of the calendar, "2026-11-21". `Date.parse` reads the 30th of February as the 2nd of March. */
export function isDay(text: string): boolean {
  const at = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? text : NaN);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** The days from one to another, both included. */
export function daysFrom(first: string, last: string): readonly string[] {
  const start = Date.parse(first);
  const length = Math.round((Date.parse(last) - start) / DAY_MS) + 1;
  return Array.from({ length: Math.max(1, length) }, (_, at) =>
    new Date(start + at * DAY_MS).toISOString().slice(0, 10),
  );
}

/** A name without bidirectional control characters, which would reverse the text around it. */
export function readable(name: string): string {
  return name.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

/** "250 ms", "1.2 s": how long a call took. */
export function latency(ms: number): string {
  return ms < 999.5 ? `${grouped(ms)} ms` : inWords(ms);
}

/** "8 min ago", "just now" */
export function ago(at: number, now: number): string {
  return now - at < 1000 ? "just now" : `${inWords(now - at)} ago`;
}

/** "in 17 h" */
export function ahead(at: number, now: number): string {
  return at <= now ? "now" : `in ${inWords(at - now)}`;
}
