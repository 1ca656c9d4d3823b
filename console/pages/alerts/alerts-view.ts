import { inWords } from "../../../core/duration.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, counted, moment } from "../../../core/words.ts";
import {
  alarmIncidents,
  type AlarmIncident,
} from "../../../supervisor/alerts/alarm-incidents.ts";
import { afterSubject } from "../../../supervisor/alerts/alarm.ts";
import type { AlarmRecord } from "../../../supervisor/alerts/alarm-store.ts";
import type { ActiveAlarm } from "../../../supervisor/alerts/alerting.ts";
import type { SinkConfig } from "../../../supervisor/alerts/config.ts";
import type { SinkState } from "../../../supervisor/alerts/dispatcher.ts";
import type { Silence } from "../../../supervisor/alerts/silence.ts";
import { periodInWords } from "../../../supervisor/checks/incident-words.ts";
import { subjectOf } from "../../../supervisor/status.ts";
import { pageOf } from "../attention.ts";
import { silenceField } from "../silence-field.ts";
import { callsOfAlarm } from "./alarm-calls.ts";
import { CHANNEL_SETUPS, viewSetup } from "./channel-setup.ts";
import type { Place } from "./config-place.ts";

const PAST_SHOWN = 50;

export interface AlertsFacts {
  readonly alarms: readonly ActiveAlarm[];
  /** Newest first. */
  readonly history: readonly AlarmRecord[];
  readonly silences: readonly Silence[];
  readonly sinks: readonly SinkState[];
  /** In the order of `sinks`. */
  readonly configs: readonly SinkConfig[];
  readonly hasWatchdog: boolean;
  readonly place: Place;
  readonly now: number;
  /** IANA name. */
  readonly timeZone: string;
  /** When a silence until tomorrow ends, in words. */
  readonly tomorrow: string;
}

/** Heading and shape of the page. */
export function alertsHeading({ alarms }: Pick<AlertsFacts, "alarms">): {
  readonly title: string;
  readonly look: Look;
} {
  const down = alarms.some(({ level }) => level === "down");
  return {
    title:
      alarms.length === 0
        ? "No open alerts."
        : `${counted(alarms.length, "open alert")}.`,
    look: alarms.length === 0 ? "ok" : down ? "bad" : "warn",
  };
}

/** The page without any secret of a channel: addresses are shortened to their host. */
export function viewAlerts(facts: AlertsFacts) {
  const { alarms, history, silences, now, timeZone } = facts;
  const channels = viewChannels(facts);
  return {
    alarms: alarms.map((alarm) => ({
      subject: alarm.subject,
      href: hrefOf(alarm),
      calls: callsOfAlarm(alarm.fingerprint),
      afterSubject: afterSubject(alarm),
      warned: alarm.level === "warning",
      output: alarm.output ?? null,
      tried: alarm.tried ?? [],
      since: inWords(now - alarm.since),
      command: alarm.command,
      silenced:
        alarm.silence === null
          ? null
          : `Silenced until ${moment(alarm.silence.until, timeZone)}: ${alarm.silence.why}`,
    })),
    silenceField: silenceField(facts.tomorrow),
    silences: silences.map(({ id, pattern, until, why }) => ({
      id,
      pattern,
      until: moment(until, timeZone),
      why,
    })),
    channels,
    hasWatchdog: facts.hasWatchdog,
    setups: CHANNEL_SETUPS.map((setup) => ({
      ...viewSetup(setup, facts.place),
      isOpen: channels.length === 0 && setup.kind === "ntfy",
    })),
    history: alarmIncidents(history)
      .slice(0, PAST_SHOWN)
      .map((incident) => viewPast(incident, facts)),
  };
}

function viewChannels({ sinks, configs, now }: AlertsFacts) {
  return sinks.flatMap((sink, at) => {
    const config = configs[at];
    return config === undefined ? [] : [viewChannel(sink, config, now)];
  });
}

function viewChannel(sink: SinkState, config: SinkConfig, now: number) {
  const { name, trouble, deliveredAt, waiting } = sink;
  const look: Look =
    trouble !== null ? "bad" : deliveredAt === null ? "none" : "ok";
  return {
    name,
    look,
    state:
      trouble !== null
        ? "failing"
        : deliveredAt === null
          ? "not used since the start"
          : `delivered ${ago(deliveredAt, now)}`,
    target: targetOf(config),
    trouble,
    notes: [
      ...(waiting === 0 ? [] : [`${counted(waiting, "message")} waiting`]),
      config.fallback
        ? "only what another channel could not deliver"
        : `reminds every ${inWords(config.remind)}`,
    ].join(" · "),
  };
}

/** Where a channel leads, without what could be a secret: path and query of an address. */
function targetOf(config: SinkConfig): string {
  switch (config.kind) {
    case "smtp":
      return `Mail to ${config.to.join(", ")} through ${config.host}:${config.port}`;
    case "ntfy":
      return `ntfy topic at ${new URL(config.url).host}`;
    case "slack":
      return `Slack webhook at ${new URL(config.url).host}`;
    case "webhook":
      return `Webhook at ${new URL(config.url).host}`;
  }
}

/** The page of what an alarm is about; null: there is none. */
function hrefOf(alarm: ActiveAlarm): string | null {
  const href = pageOf({ about: subjectOf(alarm) });
  return href === "/" ? null : href;
}

function viewPast(
  { alarm, level, from, until, times, channels }: AlarmIncident,
  { now, timeZone }: AlertsFacts,
) {
  const isOpen = until === null;
  const isNotice = level === "notice";
  const look: Look =
    !isOpen || isNotice ? "none" : level === "down" ? "bad" : "warn";
  const lasted = inWords((until ?? now) - from);
  return {
    subject: alarm.subject,
    afterSubject: afterSubject(alarm),
    look,
    period: isNotice
      ? moment(from, timeZone)
      : periodInWords(from, until, timeZone),
    facts: isNotice
      ? ["notice"]
      : [
          level,
          isOpen ? `open for ${lasted}` : `lasted ${lasted}`,
          ...(times === 1 ? [] : [`raised ${times} times`]),
        ],
    // Emptied once the end is reported.
    notified:
      channels.length === 0 ? null : `sent through ${channels.join(", ")}`,
  };
}
