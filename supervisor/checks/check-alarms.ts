import type { Alarms } from "../alerts/alarm.ts";
import type { CheckView } from "./watched.ts";

/** Tells people of checks and of what was tried for them. */
export interface CheckAlarms {
  /** Raises, keeps or clears a check's alarm as its state says. */
  readonly tell: (check: CheckView, tried: readonly string[]) => void;
  /** The check is not watched any more, or nobody is to be told of it now. */
  readonly withdraw: (check: string) => void;
  readonly gaveUp: (service: string, text: string, output: string) => void;
  readonly healed: (service: string) => void;
  readonly cutOff: (isSo: boolean) => void;
}

/** `timeZone` is that of the times in their sentences. */
export function openCheckAlarms(alarms: Alarms, timeZone: string): CheckAlarms {
  return {
    tell: (check, tried) => {
      const fingerprint = fingerprintOf(check.name);
      if (check.flapping) {
        alarms.raise({
          fingerprint,
          level: "down",
          subject: check.name,
          text: `${check.name} goes down and comes back again and again: more than 4 changes in 10 minutes`,
          ...(check.latest === null ? {} : { output: check.latest.text }),
          tried,
          command: commandFor(check),
        });
        return;
      }
      switch (check.state) {
        case "down":
          if (check.inhibitedBy !== null || check.latest === null) {
            return;
          }
          alarms.raise({
            fingerprint,
            level: check.latest.ok ? "down" : check.latest.level,
            subject: check.name,
            text: `${check.name} ${check.latest.level === "down" ? "is down" : "needs a look"} since ${clockTime(check.since, timeZone)}`,
            output: check.latest.text,
            tried,
            command: commandFor(check),
          });
          return;
        case "up":
        case "maintenance":
        case "paused":
          alarms.clear(fingerprint);
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
        text: `${service} is not restarted any more: ${text}; it stays watched`,
        output,
        command: `hearth logs ${service}; hearth restart ${service}`,
      }),
    healed: (service) => alarms.clear(healingFingerprint(service)),
    cutOff: (isSo) => {
      if (isSo) {
        alarms.raise({
          fingerprint: CUT_OFF_FINGERPRINT,
          level: "warning",
          subject: "supervisor",
          text: "the supervisor reaches none of its references and judges nobody until it does",
          command: "hearth config",
        });
      } else {
        alarms.clear(CUT_OFF_FINGERPRINT);
      }
    },
  };
}

const CUT_OFF_FINGERPRINT = "supervisor:cut-off";

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
