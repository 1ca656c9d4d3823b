import type { History } from "../history.ts";
import type { Alarms } from "./alarm.ts";

/** Alarms that go to the history and nowhere else. */
export function recordAlarms(history: History): Alarms {
  const raised = new Set<string>();
  return {
    raise: ({ fingerprint, subject, text }) => {
      if (raised.has(fingerprint)) return;
      raised.add(fingerprint);
      history.act(subject, "alarm", text);
    },
    clear: (fingerprint) => {
      if (raised.delete(fingerprint))
        history.act(fingerprint, "alarm-over", "over");
    },
  };
}
