import { expect, test } from "vitest";
import type { Alarm } from "../../alerts/alarm.ts";
import type { ServiceState } from "../runtime.ts";
import { alarmsIn } from "../../../test/supervisor/raised-alarms.ts";
import { serviceView } from "../../../test/supervisor/service-view.ts";
import { alarmOfService, retainServices } from "./service-alarms.ts";

/** The texts raised after each of a series of states. */
function walk(...states: readonly ServiceState[]): readonly (string | null)[] {
  const raised = new Map<string, Alarm>();
  return states.map((state) => {
    alarmOfService(alarmsIn(raised), serviceView("gateway", state));
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

test("the alarm of a service ends when it no longer belongs to the stack", () => {
  const raised = new Map<string, Alarm>();
  const alarms = alarmsIn(raised);
  alarmOfService(alarms, serviceView("gateway", "gave-up"));
  alarmOfService(alarms, serviceView("echo", "gave-up"));
  retainServices(alarms, ["postgres", "gateway"]);
  expect([...raised.keys()]).toEqual(["service:gateway"]);
});
