import { inWords } from "../../core/duration.ts";
import type { Alarm } from "./alarm.ts";

/** raised: told for the first time; reminder: still there; resolved: over. */
export type AlertEventKind = "raised" | "reminder" | "resolved";

/** One thing that a message tells. Times in milliseconds since 1970. */
export interface AlertEvent {
  readonly event: AlertEventKind;
  readonly alarm: Alarm;
  readonly since: number;
  /** When it was over; null while it lasts. */
  readonly until: number | null;
}

/** What a sink delivers: everything that came together within the group's time. */
export interface AlertMessage {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The machine that tells. */
  readonly host: string;
  /** The zone of the times that people read; that of the machine where an older version kept the message. */
  readonly timeZone?: string;
  readonly events: readonly AlertEvent[];
}

/** down, warning and fine, each with its shape: colour is never alone. */
export type AlertTone = "down" | "warning" | "fine";

export function toneOf(message: AlertMessage): AlertTone {
  const lasting = message.events.filter(({ event }) => event !== "resolved");
  if (lasting.some(({ alarm }) => alarm.level === "down")) {
    return "down";
  }
  return lasting.length > 0 ? "warning" : "fine";
}

const shapes: Readonly<Record<AlertTone, string>> = {
  down: "✕",
  warning: "▲",
  fine: "●",
};

/** The whole message in one line: "✕ gateway is down (home-a)". */
export function titleOf(message: AlertMessage): string {
  return `${shapes[toneOf(message)]} ${gistOf(message.events)} (${message.host})`;
}

function gistOf(events: readonly AlertEvent[]): string {
  const names = (wanted: (event: AlertEvent) => boolean) => [
    ...new Set(events.filter(wanted).map(({ alarm }) => alarm.subject)),
  ];
  const over = names(({ event }) => event === "resolved");
  const down = names(
    ({ event, alarm }) => event !== "resolved" && alarm.level === "down",
  );
  const warned = names(
    ({ event, alarm }) => event !== "resolved" && alarm.level === "warning",
  );
  const parts = [
    down.length > 0 ? `${listed(down)} ${isOrAre(down)} down` : "",
    warned.length > 0
      ? `${listed(warned)} ${warned.length === 1 ? "needs" : "need"} attention`
      : "",
    over.length > 0 ? `${listed(over)} ${isOrAre(over)} well again` : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

/** The message in plain lines: what, since when, last output, what was tried, the command to look further. */
export function textOf(message: AlertMessage): string {
  return message.events
    .map((event) => paragraphOf(event, message).join("\n"))
    .join("\n\n");
}

/** One event in lines, the first of which says what it is. */
export function paragraphOf(
  { event, alarm, since, until }: AlertEvent,
  { at, timeZone }: Pick<AlertMessage, "at" | "timeZone">,
): readonly string[] {
  const timeOf = (moment: number) => momentIn(timeZone, moment);
  const lead = `${alarm.subject}: ${alarm.text}`;
  if (event === "resolved") {
    return [
      `${shapes.fine} over: ${lead}`,
      `it lasted ${inWords((until ?? at) - since)}, from ${timeOf(since)} to ${timeOf(until ?? at)}`,
    ];
  }
  return [
    `${shapes[alarm.level]} ${event === "reminder" ? "still " : ""}${lead}`,
    `since ${timeOf(since)} (${inWords(at - since)})`,
    ...(alarm.output === undefined ? [] : [`last output: ${alarm.output}`]),
    ...(alarm.tried ?? []).map((each) => `tried: ${each}`),
    `look further: ${alarm.command}`,
  ];
}

/** "21 Nov, 10:02 CET" */
function momentIn(timeZone: string | undefined, at: number): string {
  return new Intl.DateTimeFormat("en-GB", {
    ...(timeZone === undefined ? {} : { timeZone }),
    timeZoneName: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  }).format(at);
}

function listed(names: readonly string[]): string {
  if (names.length > 4) {
    return `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
  }
  return names.length < 2
    ? names.join("")
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function isOrAre(names: readonly string[]): string {
  return names.length === 1 ? "is" : "are";
}
