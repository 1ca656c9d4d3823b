import { inWords } from "../../core/duration.ts";
import type { Alarm } from "./alarm.ts";
import { listed } from "../../core/words.ts";

/** raised: reported for the first time; reminder: still active; resolved: ended. */
export type AlertEventKind = "raised" | "reminder" | "resolved";

/** One event of a message. Times in milliseconds since 1970. */
export interface AlertEvent {
  readonly event: AlertEventKind;
  readonly alarm: Alarm;
  readonly since: number;
  /** Its end; null while it is active. */
  readonly until: number | null;
}

/** A message for sinks: all events grouped within some time. */
export interface AlertMessage {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Name of the sending machine. */
  readonly host: string;
  /** Time zone of the text; that of the machine if an older version saved the message. */
  readonly timeZone?: string;
  readonly events: readonly AlertEvent[];
  /** Address of the console, where it has a public one. */
  readonly consoleUrl?: string;
  /** The user whom all events concern: the message goes to this e-mail address instead of the sink's own. */
  readonly owner?: string;
}

/** Each has its own shape: colour is never the only difference. */
type AlertTone = Alarm["level"] | "fine";

export function toneOf(message: AlertMessage): AlertTone {
  const lasting = message.events.filter(({ event }) => event !== "resolved");
  if (lasting.some(({ alarm }) => alarm.level === "down")) {
    return "down";
  }
  if (lasting.some(({ alarm }) => alarm.level === "warning")) {
    return "warning";
  }
  return lasting.length > 0 ? "notice" : "fine";
}

const SHAPES: Readonly<Record<AlertTone, string>> = {
  down: "✕",
  warning: "▲",
  notice: "○",
  fine: "●",
};

/** The whole message in one line: "✕ gateway is down (home-a)". */
export function titleOf(message: AlertMessage): string {
  return `${SHAPES[toneOf(message)]} ${gistOf(message.events)} (${message.host})`;
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
  const noticed = names(({ alarm }) => alarm.level === "notice");
  const parts = [
    down.length > 0 ? `${listedBriefly(down)} ${isOrAre(down)} down` : "",
    warned.length > 0
      ? `${listedBriefly(warned)} ${warned.length === 1 ? "needs" : "need"} attention`
      : "",
    noticed.length > 0 ? `notice about ${listedBriefly(noticed)}` : "",
    over.length > 0 ? `${listedBriefly(over)} recovered` : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

/** The message as plain text: problem, start, last output, attempted fixes, next step. */
export function textOf(message: AlertMessage): string {
  return message.events
    .map((event) => paragraphOf(event, message).join("\n"))
    .join("\n\n");
}

/** One event as lines, the first being its summary. */
export function paragraphOf(
  { event, alarm, since, until }: AlertEvent,
  { at, timeZone, owner }: Pick<AlertMessage, "at" | "timeZone" | "owner">,
): readonly string[] {
  const timeOf = (moment: number) => momentIn(timeZone, moment);
  const lead = `${alarm.subject}: ${alarm.text}`;
  if (event === "resolved") {
    return [
      `${SHAPES.fine} resolved: ${lead}`,
      `duration ${inWords((until ?? at) - since)}, from ${timeOf(since)} to ${timeOf(until ?? at)}`,
    ];
  }
  return [
    `${SHAPES[alarm.level]} ${event === "reminder" ? "still " : ""}${lead}`,
    ...(alarm.level === "notice"
      ? []
      : [`since ${timeOf(since)} (${inWords(at - since)})`]),
    ...(alarm.output === undefined ? [] : [`last output: ${alarm.output}`]),
    ...(alarm.tried ?? []).map((each) => `tried: ${each}`),
    // Only operators have this command.
    ...(owner === undefined ? [`next step: ${alarm.command}`] : []),
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

function listedBriefly(names: readonly string[]): string {
  return names.length > 4
    ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`
    : listed(names);
}

function isOrAre(names: readonly string[]): string {
  return names.length === 1 ? "is" : "are";
}
