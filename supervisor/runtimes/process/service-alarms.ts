import type { Alarms } from "../../alerts/alarm.ts";
import type { ServiceView } from "../runtime.ts";

/**
 * Raises an alarm for a service that ended, and clears it when it runs again. Alarms that are over within half a minute are
 * told to nobody: what was started again at once is in the history only.
 */
export function alarmOfService(
  alarms: Alarms,
  { name, state, reason }: ServiceView,
): void {
  const fingerprint = `service:${name}`;
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
        text: `${name} ended and is started again`,
        command: `hearth logs ${name}`,
      });
      return;
    case "gave-up":
      alarms.raise({
        ...alarm,
        text: `${name} ended too often and is not started again by itself`,
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
