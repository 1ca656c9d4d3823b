import { expect, test } from "vitest";
import type { Alarm } from "../../alerts/alarm.ts";
import type { ServiceState } from "../runtime.ts";
import { alarmOfService } from "./service-alarms.ts";

/** The texts raised after each of a series of states. */
function walk(...states: readonly ServiceState[]): readonly (string | null)[] {
  const raised = new Map<string, Alarm>();
  return states.map((state) => {
    alarmOfService(
      {
        raise: (alarm) => raised.set(alarm.fingerprint, alarm),
        clear: (fingerprint) => raised.delete(fingerprint),
      },
      {
        name: "gateway",
        state,
        since: 0,
        pid: null,
        address: "",
        port: 1,
        adopted: false,
        tookMs: null,
        restarts: 0,
        reason: "killed by SIGKILL",
      },
    );
    return raised.get("service:gateway")?.text ?? null;
  });
}

const AGAIN = "gateway ended and is being restarted";

test("a service that ended raises an alarm until it runs; one stopped on demand raises none", () => {
  expect(walk("running", "backing-off", "starting", "running")).toEqual([
    null,
    AGAIN,
    AGAIN,
    null,
  ]);
  expect(walk("backing-off", "gave-up", "starting", "running")).toEqual([
    AGAIN,
    "gateway ended too often and is no longer restarted",
    "gateway ended too often and is no longer restarted",
    null,
  ]);
  expect(walk("stopping", "stopped")).toEqual([null, null]);
});
