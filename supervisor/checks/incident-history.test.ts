import { beforeEach, expect, test } from "vitest";
import { MINUTE_MS } from "../../core/duration.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import type { History } from "../history/history.ts";
import { historyByIncident } from "./incident-history.ts";

let history: History;
let now: number;

const start = Date.UTC(2026, 10, 1);

beforeEach(() => {
  now = start;
  history = temporaryHistory(() => now);
});

test("a service that flaps forty times is one row, between what people did", () => {
  history.act("gateway", "start", "hearth up");
  now += MINUTE_MS;
  history.serviceChanged("gateway", "stopped", "waiting", null);
  history.serviceChanged("gateway", "waiting", "starting", null);
  history.serviceChanged("gateway", "starting", "running", null);
  history.checkChanged("gateway", "new", "up", "answered 200");
  now += 30 * MINUTE_MS;
  const began = now;
  for (let flap = 0; flap < 40; flap += 1) {
    history.checkChanged("gateway", "up", "pending", "answered 500");
    history.checkChanged("gateway", "pending", "down", "answered 500");
    history.act("gateway", "alarm", "gateway is down");
    if (flap === 7) {
      history.act("gateway", "heal", "3 failures");
    }
    now += MINUTE_MS;
    history.checkChanged("gateway", "down", "up", "answered 200");
    history.act("gateway", "alarm-over", "gateway is up");
    now += 2 * MINUTE_MS;
  }
  history.checkChanged("notes", "up", "pending", "timed out");
  history.checkChanged("notes", "pending", "up", "answered 200");
  history.checkChanged("gateway", "up", "paused", "moving");
  now += MINUTE_MS;
  history.act("gateway", "asked", "silence");
  const rows = historyByIncident(history, now, 30);
  expect(rows.map(({ kind, name, to }) => `${kind} ${name} ${to}`)).toEqual([
    "act gateway asked",
    "check gateway paused",
    "incident gateway down",
    "act gateway start",
  ]);
  expect(rows.find(({ kind }) => kind === "incident")).toEqual({
    at: began,
    kind: "incident",
    name: "gateway",
    from: null,
    to: "down",
    until: began + 118 * MINUTE_MS,
    durationMs: 118 * MINUTE_MS,
    downMs: 40 * MINUTE_MS,
    times: 40,
    reason: "answered 500",
    down: true,
    restarts: 1,
  });
});

test("a start that failed is shown", () => {
  history.serviceChanged("gateway", "waiting", "starting", null);
  history.serviceChanged("gateway", "starting", "backing-off", "exited");
  history.serviceChanged("gateway", "backing-off", "starting", null);
  history.serviceChanged("gateway", "starting", "running", null);
  expect(historyByIncident(history, now, 30)).toMatchObject([
    { kind: "service", to: "backing-off", reason: "exited" },
  ]);
});

test("rows can be limited in number and to one name, and an incident may be ongoing", () => {
  history.checkChanged("gateway", "pending", "down", "answered 500");
  now += MINUTE_MS;
  history.checkChanged("notes", "pending", "down", "timed out");
  now += MINUTE_MS;
  expect(historyByIncident(history, now, 1)).toMatchObject([{ name: "notes" }]);
  expect(historyByIncident(history, now, 9, "gateway")).toMatchObject([
    { name: "gateway", until: null, durationMs: 2 * MINUTE_MS },
  ]);
});
