import Fastify, { type FastifyInstance } from "fastify";
import { createServer, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWatch } from "../../supervisor/checks/check-watch.ts";
import type { Watch } from "../../supervisor/checks/watch.ts";
import { configSchema } from "../../supervisor/config/schema.ts";
import type { History } from "../../supervisor/history/history.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { waitFor } from "../../test/wait-for.ts";
import { registerCheckRoutes } from "./check-routes.ts";
import { listen } from "../../test/servers/ports.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

let history: History;
let watch: Watch;
let api: FastifyInstance;
let site: Server;

beforeEach(async () => {
  history = temporaryHistory();
  site = createServer((_request, response) => response.end());
  const port = await listen(site);
  const url = `http://127.0.0.1:${port}`;
  const config = configSchema.parse({
    checks: [
      { name: "site", kind: "http", url, every: "50ms" },
      { name: "copy", kind: "heartbeat" },
    ],
  });
  watch = startWatch({
    config,
    runtime: undefined,
    history,
    alarms: alarmsIn(new Map()),
    onChange: () => {},
    onError: (error) => {
      throw error;
    },
  });
  api = Fastify();
  registerCheckRoutes(api, () => watch, history);
  await waitFor("up", () => stateOf("site") === "up");
  await waitFor("listening", () => stateOf("copy") === "up");
});
afterEach(async () => {
  watch.stop();
  await api.close();
  site.closeAllConnections();
  site.close();
});

function stateOf(name: string): string | undefined {
  return watch.list().find((check) => check.name === name)?.state;
}

test("a check is returned with its hours, records and incidents", async () => {
  const answer = await api.inject({ url: "/api/checks/site" });
  const { check, hours, lastDay, incidents } = answer.json();
  expect(check).toMatchObject({ name: "site", state: "up" });
  expect(hours).toHaveLength(24);
  expect(lastDay).toMatchObject({ name: "site", failures: 0 });
  expect(incidents).toEqual([]);
});

test("a paused check does not run until it is resumed", async () => {
  const payload = { why: "moves to another machine" };
  const paused = await api.inject({
    method: "POST",
    url: "/api/pause/site",
    payload,
  });
  expect(paused.json()).toMatchObject({ state: "paused", note: payload.why });
  // One check may still have been running.
  await waitFor("no more checks", async () => {
    const at = watch.list()[0]?.latest?.at;
    await sleep(200);
    return watch.list()[0]?.latest?.at === at;
  });
  await api.inject({ method: "POST", url: "/api/resume/site" });
  await waitFor("up again", () => stateOf("site") === "up");
});

test("maintenance is opened, shown and ended", async () => {
  const started = await api.inject({
    method: "POST",
    url: "/api/maintenance",
    payload: { checks: ["site"], for: "2h", why: "new disk" },
  });
  expect(started.statusCode).toBe(201);
  const { id } = started.json();
  expect(stateOf("site")).toBe("maintenance");
  const { windows } = (await api.inject({ url: "/api/maintenance" })).json();
  expect(windows).toMatchObject([{ id, checks: ["site"], why: "new disk" }]);
  await api.inject({ method: "DELETE", url: `/api/maintenance/${id}` });
  expect(history.latest(5, "site")).toContainEqual(
    expect.objectContaining({ to: "asked", reason: "maintenance ended" }),
  );
  await waitFor("judged again", () => stateOf("site") === "up");
});

test("a heartbeat reports failure with output, and success, at once", async () => {
  const failed = await api.inject({
    method: "POST",
    url: "/ping/copy/3",
    payload: "reading …\nno space left\n",
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  expect(failed.json()).toEqual({ name: "copy", state: "down" });
  expect(watch.list()[1]?.latest?.text).toContain(
    "exit code 3: reading … no space left",
  );
  const after = async (how: string) =>
    (await api.inject({ url: `/ping/copy${how}` })).json().state;
  // A start ping does not change the state.
  expect(await after("/start")).toBe("down");
  expect(await after("/0")).toBe("up");
  expect(await after("/fail")).toBe("down");
  expect(await after("")).toBe("up");
});

test.each<
  ["GET" | "POST" | "DELETE", string, object | undefined, number, string]
>([
  [
    "GET",
    "/api/checks/sight",
    undefined,
    404,
    'check "sight" not found; available: site, copy.',
  ],
  [
    "POST",
    "/api/pause/sight",
    undefined,
    404,
    'check "sight" not found; available: site, copy.',
  ],
  [
    "POST",
    "/api/pause/site",
    { why: "" },
    400,
    "why: must be at least 3 characters.",
  ],
  [
    "POST",
    "/api/maintenance",
    { for: "1h", why: "new disk", checks: ["sight"] },
    404,
    'check "sight" not found; available: site, copy.',
  ],
  [
    "POST",
    "/api/maintenance",
    { for: "long", why: "new disk" },
    400,
    "for: must be a duration such as 500ms, 30s, 2m, 1h or 7d.",
  ],
  [
    "GET",
    "/ping/site",
    undefined,
    404,
    'heartbeat "site" not found in config/supervisor.yaml.',
  ],
  [
    "GET",
    "/ping/copy/well",
    undefined,
    400,
    'invalid ping "well": use /ping/copy, /ping/copy/start, /ping/copy/fail or /ping/copy/<exit code>.',
  ],
])(
  "%s %s with %j is rejected with one sentence",
  async (method, url, payload, status, message) => {
    const answer = await api.inject({
      method,
      url,
      ...(payload && { payload }),
    });
    expect(answer.statusCode).toBe(status);
    expect(answer.json().error.message).toBe(message);
  },
);
