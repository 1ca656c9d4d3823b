import type { Alarms, ReplacedAlarms } from "../../alerts/alarm.ts";
import type { ServiceView } from "../runtime.ts";

/**
 * Raises an alarm for a service that ended, and clears it when it runs again. Alarms that end within half a minute are not
 * reported: quick restarts are only in the history.
 */
export function alarmOfService(
  alarms: Alarms,
  { name, state, reason }: ServiceView,
): void {
  const fingerprint = fingerprintOf(name);
  const alarm = {
    fingerprint,
    level: "down",
    subject: name,
    ...(reason === null ? {} : { output: reason }),
  } as const;
  switch (state) {
    case "backing-off":
      alarms.raise({
        ...alarm,
        text: `${name} ended and is being restarted`,
        command: `hearth logs ${name}`,
      });
      return;
    case "gave-up":
      alarms.raise({
        ...alarm,
        text: `${name} ended too often and is no longer restarted`,
        command: `hearth logs ${name}; hearth restart ${name}`,
      });
      return;
    case "running":
    case "stopped":
      alarms.clear(fingerprint);
      return;
    case "waiting":
    case "starting":
    case "stopping":
    case "ended":
    case "absent":
    case "unknown":
  }
}

/** Clears the alarms about services that no longer belong to the stack. */
export function retainServices(
  alarms: ReplacedAlarms,
  names: readonly string[],
): void {
  alarms.retain(fingerprintOf(""), names.map(fingerprintOf));
}

function fingerprintOf(service: string): string {
  return `service:${service}`;
}
