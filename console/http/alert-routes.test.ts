import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openAlarmStore } from "../../supervisor/alerts/alarm-store.ts";
import { Alerting } from "../../supervisor/alerts/alerting.ts";
import type { History } from "../../supervisor/history/history.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { registerAlertRoutes } from "./alert-routes.ts";

let history: History;
let alerting: Alerting;
let server: FastifyInstance;
let sent: number;

beforeEach(() => {
  history = temporaryHistory();
  sent = 0;
  alerting = new Alerting({
    store: openAlarmStore(history.db),
    sinks: [
      {
        name: "phone",
        remindMs: 1,
        fallback: false,
        send: async () => {
          sent += 1;
        },
      },
    ],
    host: "a",
    timeZone: "UTC",
    now: Date.now,
    onNotice: () => {},
  });
  server = Fastify();
  registerAlertRoutes(server, alerting, history);
});
afterEach(async () => {
  await server.close();
  await alerting.stop();
});

const silence = { pattern: "gateway", for: "2h", why: "new memory" };

test("a silence is created, listed, shown with its alarm, and ended", async () => {
  alerting.raise({
    fingerprint: "check:gateway",
    level: "down",
    subject: "gateway",
    text: "gateway is down",
    command: "hearth check gateway",
  });
  const created = await server.inject({
    method: "POST",
    url: "/api/silences",
    payload: silence,
  });
  expect(created.statusCode).toBe(201);
  const { id, from, until } = created.json<{
    readonly id: string;
    readonly from: number;
    readonly until: number;
  }>();
  expect(until - from).toBe(7_200_000);
  const seen = await server.inject({ url: "/api/alerts" });
  expect(seen.json()).toMatchObject({
    alarms: [{ subject: "gateway", silence: { id, why: "new memory" } }],
    sinks: [{ name: "phone", waiting: 0, trouble: null }],
    silences: [{ id }],
  });
  const ended = await server.inject({
    method: "DELETE",
    url: "/api/silences/gateway",
  });
  expect(ended.json()).toMatchObject({ ended: [{ id }] });
  expect(history.latest(1)).toMatchObject([
    { name: "gateway", to: "asked", reason: "silence ended" },
  ]);
  const again = await server.inject({
    method: "DELETE",
    url: `/api/silences/${id}`,
  });
  expect(again.statusCode).toBe(404);
  expect(again.body).toContain(
    `silence \\"${id}\\" not found; there are no silences.`,
  );
});

test.each<[unknown, string]>([
  [
    { ...silence, for: "long" },
    "for: must be a duration such as 500ms, 30s, 2m, 1h or 7d.",
  ],
  [{ ...silence, for: "365d" }, "for: must be at most 90d."],
  [{ ...silence, why: " " }, "why: must be at least 3 characters."],
  [{ for: "2h", why: "new memory" }, "pattern: must be the name of an alarm."],
  [{ ...silence, loud: true }, 'body: Unrecognized key: "loud".'],
])("%j is rejected with one sentence", async (payload, message) => {
  const answer = await server.inject({
    method: "POST",
    url: "/api/silences",
    payload: payload as object,
  });
  expect(answer.statusCode).toBe(400);
  expect(answer.json()).toEqual({ error: { message, code: "400" } });
  expect(alerting.silences()).toEqual([]);
});

test("a test message is sent at once", async () => {
  const answer = await server.inject({
    method: "POST",
    url: "/api/alerts/test",
  });
  expect(answer.json()).toMatchObject({ sinks: [{ name: "phone" }] });
  expect(sent).toBe(1);
});
