import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import type { InjectOptions } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { operatorHeaders } from "../../supervisor/credentials.ts";
import type { Watch } from "../../supervisor/checks/watch.ts";
import type { CheckView } from "../../supervisor/checks/watched.ts";
import { Failure } from "../../core/failure.ts";
import type { History } from "../../supervisor/history/history.ts";
import type {
  Runtime,
  ServiceView,
} from "../../supervisor/runtimes/runtime.ts";
import { findAttention, type Status } from "../../supervisor/status.ts";
import { judge } from "../../supervisor/verdict.ts";
import { asOperator, testCredentials } from "../../test/supervisor/operator.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { openGatewayApi } from "../pages/nouns/noun-context.ts";
import { registerCheckRoutes } from "./check-routes.ts";
import { buildApi } from "./server.ts";
import { showPage } from "./show-page.ts";

let history: History;
let api: ReturnType<typeof buildApi>;
let stopped: string[];
let restarted: string[];
let searches: number;
let notices: string[];
let gateway: ServiceView;
let check: CheckView;

const GATEWAY: ServiceView = {
  name: "gateway",
  state: "running",
  since: 1000,
  pid: 7,
  address: "http://127.0.0.1:4000",
  port: 4000,
  adopted: false,
  tookMs: 500,
  restarts: 0,
  reason: null,
};

const CHECK: CheckView = {
  name: "gateway",
  kind: "http",
  state: "up",
  since: 1000,
  inhibitedBy: null,
  flapping: false,
  latest: {
    ok: true,
    level: "down",
    latencyMs: 3,
    text: "answered 200",
    at: 2000,
    measures: {},
  },
  healing: null,
  note: null,
  service: "gateway",
};

const MAX_CONNECTIONS = 8;

beforeEach(() => {
  history = temporaryHistory();
  stopped = [];
  restarted = [];
  searches = 0;
  notices = [];
  gateway = { ...GATEWAY };
  check = { ...CHECK };
  api = buildApi({
    gateway: openGatewayApi({}),
    status,
    attention: () => {
      searches += 1;
      return status().attention;
    },
    onNotice: (sentence) => notices.push(sentence),
    runtime: () => runtime,
    watch: () => watch,
    history,
    stop: (reason) => stopped.push(reason),
    credentials: () => testCredentials,
    publicUrl: undefined,
    arrivalMs: 100,
    maxConnections: MAX_CONNECTIONS,
  });
});
afterEach(async () => {
  await api.close();
});

const watch: Watch = {
  list: () => [check],
  probeNow: async (name) => (name === check.name ? check : undefined),
  resetHealing: () => {},
  pause: () => check,
  resume: () => check,
  maintenance: {
    open: () => [],
    start: () => {
      throw new Error("not in this test");
    },
    end: () => [],
  },
  ping: async () => undefined,
  stop: () => {},
};

const runtime: Runtime = {
  list: () => [gateway],
  inspect: (name) => (name === "gateway" ? gateway : undefined),
  probe: async (name) => (name === "gateway" ? gateway : undefined),
  logs: (_name, lines) => ["one", "two"].slice(-lines),
  stats: () => undefined,
  restart: async (name) => {
    if (gateway.state === "gave-up") {
      throw new Failure("it does not start.");
    }
    restarted.push(name);
  },
};

function status(): Status {
  const attention = findAttention([gateway], [check], [], []);
  return {
    ...judge("running", [gateway], attention, []),
    phase: "running",
    at: 61_000,
    supervisor: {
      pid: 1,
      address: "http://127.0.0.1:4080",
      since: 0,
      release: null,
      home: "/home",
      memoryBytes: 1,
    },
    services: [
      { ...gateway, stats: { memoryBytes: 104_857_600, cpuSeconds: 1 } },
    ],
    checks: [check],
    attention,
    notices: [],
    offsite: null,
  };
}

function ask(options: InjectOptions) {
  return api.inject({
    remoteAddress: "127.0.0.1",
    ...options,
    headers: { host: "127.0.0.1:4080", ...asOperator, ...options.headers },
  });
}

/** A request without the operator's password, or with other headers. */
function askAs(
  headers: Readonly<Record<string, string>>,
  options: InjectOptions,
) {
  return api.inject({
    remoteAddress: "127.0.0.1",
    ...options,
    headers: { host: "127.0.0.1:4080", ...headers },
  });
}

test("pages are compressed for browsers, and keep their headers", async () => {
  const { headers, rawPayload } = await api.inject({
    url: "/nope",
    headers: {
      ...asOperator,
      accept: "text/html",
      "accept-encoding": "gzip, br",
    },
  });
  expect(headers).toMatchObject({
    "content-encoding": "gzip",
    "content-length": String(rawPayload.length),
    "cache-control": "no-store",
    "x-frame-options": "DENY",
  });
  expect(gunzipSync(rawPayload).toString()).toContain("</html>");
});

test("clients that send nothing keep no others out, and the operator reads once what to do", async () => {
  await api.listen({ host: "127.0.0.1", port: 0 });
  const { port } = api.server.address() as AddressInfo;
  const silent = Array.from({ length: MAX_CONNECTIONS }, () =>
    connect(port, "127.0.0.1"),
  );
  await Promise.all(silent.map((client) => once(client, "connect")));
  for (const _ of [1, 2]) {
    const { status } = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(status).toBe(200);
  }
  expect(notices).toHaveLength(1);
  expect(notices[0]).toContain("ulimit -n");
  silent.forEach((client) => client.destroy());
});

test("a request without credentials that stays incomplete is ended, another one may take its time", async () => {
  await api.listen({ host: "127.0.0.1", port: 0 });
  const { port } = api.server.address() as AddressInfo;
  const send = (path: string, headers: string) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/html\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\n${headers}\r\na=`,
    );
    return socket;
  };
  const operator = send(
    "/api/sign-out-all",
    `authorization: ${asOperator.authorization}\r\n`,
  );
  for (const path of ["/sign-in", "/keys/new", "/no-such-page"]) {
    const stranger = send(path, "");
    stranger.resume();
    await once(stranger, "close");
  }
  operator.write("1");
  const [answer] = (await once(operator, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 200 /);
  operator.destroy();
});

test.each([
  ["/%ff", 400, "the address is not percent-encoded UTF-8; check the link."],
  [
    `/sign-in/${"a".repeat(1_001)}`,
    414,
    "the address contains too long a name; check the link.",
  ],
])("an invalid address is named: %.10s", async (url, status, message) => {
  const answer = await askAs({}, { url });
  expect(answer.statusCode).toBe(status);
  expect(answer.json()).toMatchObject({ error: { message } });
});

test("the navigation counts what needs attention; a page that shows it too does not find it again", async () => {
  gateway = { ...gateway, state: "gave-up" };
  for (const known of [undefined, []] as const) {
    api.get(known === undefined ? "/usual" : "/known", (request, reply) =>
      showPage(
        request,
        reply,
        {
          title: "A page.",
          look: "ok",
          current: null,
          ...(known === undefined ? {} : { attention: known }),
        },
        "message",
        { sentences: [], back: "/" },
      ),
    );
  }
  const page = async (url: string) => (await ask({ url })).body;
  expect(await page("/usual")).toContain('<span class="badge">1<');
  expect(searches).toBe(1);
  expect(await page("/known")).not.toContain('class="badge"');
  expect(searches).toBe(1);
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const { cliToken, metricsToken } = testCredentials;

test.each<[string, Readonly<Record<string, string>>, number]>([
  ["this machine", {}, 401],
  ["this machine by name", { host: "localhost:4080" }, 401],
  ["a strange name for this machine", { host: "evil.example" }, 403],
  ["a proxy on this machine", { "x-forwarded-for": "192.168.1.9" }, 401],
  ["this machine with the password", asOperator, 200],
  ["this machine with a wrong one", operatorHeaders("wrong"), 401],
  ["a command", bearer(cliToken), 200],
  ["Prometheus", bearer(metricsToken), 401],
])("requests from %s", async (_who, headers, statusCode) => {
  for (const remoteAddress of ["127.0.0.1", "::1", "192.168.1.9"]) {
    const answer = await askAs(headers, { url: "/api/status", remoteAddress });
    expect(answer.statusCode).toBe(statusCode);
  }
});

test("health is public; readiness follows the state, for the operator and monitors", async () => {
  expect((await askAs({}, { url: "/healthz" })).json()).toEqual({
    status: "ok",
  });
  expect((await askAs({}, { url: "/readyz" })).statusCode).toBe(401);
  const monitor = bearer(metricsToken);
  expect((await askAs(monitor, { url: "/readyz" })).statusCode).toBe(200);
  gateway = { ...gateway, state: "gave-up", reason: "killed by SIGKILL" };
  const answer = await ask({ url: "/readyz" });
  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toEqual({ ready: false, verdict: "Gateway is down." });
});

test.each([
  { origin: "http://evil.example" },
  { "sec-fetch-site": "cross-site" },
  { origin: "null" },
])("a page of another origin (%j) stops nothing", async (headers) => {
  const answer = await ask({ method: "POST", url: "/api/stop", headers });
  expect(answer.statusCode).toBe(403);
  expect(stopped).toEqual([]);
});

test.each(["GET", "HEAD", "POST"] as const)(
  "a page of another origin sends no heartbeat with %s",
  async (method) => {
    const pinged: string[] = [];
    const ping = async (name: string) => {
      pinged.push(name);
      return check;
    };
    registerCheckRoutes(api, () => ({ ...watch, ping }), history);
    const foreign = { "sec-fetch-site": "cross-site" };
    const url = "/ping/copy/fail";
    const forged = await askAs(foreign, { method, url });
    expect([forged.statusCode, pinged]).toEqual([403, []]);
    const own = await askAs({}, { method, url });
    expect([own.statusCode, pinged]).toEqual([200, ["copy"]]);
  },
);

test("stop and restart work", async () => {
  expect((await ask({ method: "POST", url: "/api/stop" })).statusCode).toBe(
    202,
  );
  expect(stopped).toEqual(["requested by the operator"]);
  const headers = {
    origin: "http://127.0.0.1:4080",
    "sec-fetch-site": "same-origin",
  };
  const answer = await ask({
    method: "POST",
    url: "/api/restart/gateway",
    headers,
  });
  expect(answer.json()).toMatchObject({ name: "gateway", state: "running" });
  expect(restarted).toEqual(["gateway"]);
});

test("a failed restart returns the reason", async () => {
  gateway = { ...gateway, state: "gave-up" };
  const answer = await ask({ method: "POST", url: "/api/restart/gateway" });
  expect(answer.statusCode).toBe(502);
  expect(answer.json()).toEqual({
    error: { message: "it does not start.", code: "502" },
  });
});

test.each<[InjectOptions, number, string]>([
  [
    { url: "/api/logs/gatway" },
    404,
    'service "gatway" not found (did you mean "gateway"?).',
  ],
  [{ url: "/api/logs/gateway?lines=x" }, 400, "lines must be from 1 to 5000."],
  [
    { method: "POST", url: "/api/checks/nope" },
    404,
    'check "nope" not found; available: gateway.',
  ],
  [
    { method: "POST", url: "/api/restart/nope" },
    404,
    'service "nope" not found; available: gateway.',
  ],
  [{ url: "/api/nothing" }, 404, "GET /api/nothing not found."],
])("%j is rejected with one sentence", async (options, statusCode, message) => {
  const answer = await ask(options);
  expect(answer.statusCode).toBe(statusCode);
  expect(answer.json()).toEqual({
    error: { message, code: String(statusCode) },
  });
});

test("logs and checks are returned", async () => {
  expect((await ask({ url: "/api/logs/gateway?lines=1" })).json()).toEqual({
    name: "gateway",
    lines: ["two"],
  });
  expect(
    (await ask({ method: "POST", url: "/api/checks/gateway" })).json(),
  ).toEqual(check);
});

test("a body that is not JSON is rejected and has no effect", async () => {
  const answer = await ask({
    method: "POST",
    url: "/api/stop",
    headers: { "content-type": "application/json" },
    payload: "{",
  });
  expect(answer.statusCode).toBe(400);
  expect(stopped).toEqual([]);
});

test("the history can be limited in length and to one name", async () => {
  history.act("gateway", "start", "hearth up");
  history.act("notes", "start", "hearth up");
  const of = async (query: string) =>
    (await ask({ url: `/api/history${query}` })).json<{
      readonly entries: readonly { readonly name: string }[];
    }>().entries;
  expect((await of("")).map(({ name }) => name)).toEqual(["notes", "gateway"]);
  expect(await of("?limit=1")).toHaveLength(1);
  expect((await of("?name=gateway")).map(({ name }) => name)).toEqual([
    "gateway",
  ]);
  const rejected = await ask({ url: "/api/history?limit=all" });
  expect(rejected.json()).toEqual({
    error: { message: "limit must be from 1 to 10000.", code: "400" },
  });
});
