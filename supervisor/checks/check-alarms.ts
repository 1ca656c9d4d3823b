import {
  raiseWhile,
  type Alarm,
  type ReplacedAlarms,
} from "../alerts/alarm.ts";
import type { CheckResult } from "./run-check.ts";
import type { CheckView } from "./watched.ts";

/** Alarms about checks and about what was tried to fix them. */
export interface CheckAlarms {
  /** Raises, keeps or clears the alarm of a check, depending on its state. */
  readonly notify: (check: CheckView, tried: readonly string[]) => void;
  /** Clears the alarm of a check that was removed. */
  readonly withdraw: (check: string) => void;
  readonly gaveUp: (service: string, text: string, output: string) => void;
  readonly healed: (service: string) => void;
  /** Clears the alarms about other services than these: no check restarts them any more. */
  readonly restrictHealing: (services: readonly string[]) => void;
  readonly setOffline: (isOffline: boolean) => void;
}

/** `timeZone` is that of the times in sentences. */
export function openCheckAlarms(
  alarms: ReplacedAlarms,
  timeZone: string,
): CheckAlarms {
  return {
    notify: (check, tried) => {
      switch (check.flapping ? "flapping" : check.state) {
        case "flapping":
          alarms.raise(flappingAlarm(check, tried));
          return;
        case "down":
          if (check.inhibitedBy === null && check.latest !== null) {
            alarms.raise(downAlarm(check, check.latest, tried, timeZone));
          }
          return;
        case "up":
        case "maintenance":
        case "paused":
          alarms.clear(fingerprintOf(check.name));
          return;
        case "new":
        case "pending":
      }
    },
    withdraw: (check) => alarms.clear(fingerprintOf(check)),
    gaveUp: (service, text, output) =>
      alarms.raise({
        fingerprint: healingFingerprint(service),
        level: "down",
        subject: service,
        text: `${service} is no longer restarted: ${text}; its checks continue`,
        output,
        command: `hearth logs ${service}; hearth restart ${service}`,
      }),
    healed: (service) => alarms.clear(healingFingerprint(service)),
    restrictHealing: (services) =>
      alarms.retain(healingFingerprint(""), services.map(healingFingerprint)),
    setOffline: (isOffline) =>
      raiseWhile(isOffline, alarms, {
        fingerprint: OFFLINE_FINGERPRINT,
        level: "warning",
        subject: "supervisor",
        text: "the supervisor reaches none of its reference addresses; failed checks are not counted until it does",
        command: "hearth config",
      }),
  };
}

function flappingAlarm(check: CheckView, tried: readonly string[]): Alarm {
  const alarm: Alarm = {
    fingerprint: fingerprintOf(check.name),
    level: "down",
    subject: check.name,
    text: `${check.name} is flapping: more than 4 changes in 10 minutes`,
    tried,
    command: commandFor(check),
  };
  return check.latest === null
    ? alarm
    : { ...alarm, output: check.latest.text };
}

function downAlarm(
  check: CheckView,
  latest: CheckResult,
  tried: readonly string[],
  timeZone: string,
): Alarm {
  return {
    fingerprint: fingerprintOf(check.name),
    level: latest.ok ? "down" : latest.level,
    subject: check.name,
    text: `${check.name} ${latest.level === "down" ? "is down" : "needs attention"} since ${clockTime(check.since, timeZone)}`,
    output: latest.text,
    tried,
    command: commandFor(check),
  };
}

const OFFLINE_FINGERPRINT = "supervisor:cut-off";

function fingerprintOf(check: string): string {
  return `check:${check}`;
}

function healingFingerprint(service: string): string {
  return `healing:${service}`;
}

function commandFor({ name, service }: CheckView): string {
  return service === null
    ? `hearth check ${name}`
    : `hearth check ${name}; hearth logs ${service}`;
}

/** "14:03:05 CET" */
export function clockTime(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  }).format(at);
}
