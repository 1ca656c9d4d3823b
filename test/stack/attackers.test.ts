import { execFileSync, spawnSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, request, type IncomingMessage } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { temporaryHome } from "../supervisor/temporary-home.ts";
import { startWatcher } from "../../embedded/watcher.ts";
import { prepareStack, type Stack, type StartedStack } from "./stack.ts";
import { listen, portOf } from "../servers/ports.ts";

/** Requests to port 4080 of a running stack without the operator's credentials: each is answered 401 or 403 and changes nothing. */

interface Attempt {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Sends an attempt; each kind of attacker adds its own headers. */
type Send = (attempt: Attempt) => Promise<Answer>;

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_BODY = { "content-type": "application/json" };

let stack: Stack;
let started: StartedStack;
let port: number;
/** A foreign server that counts connections: a restore over the API once loaded a backup into one. */
let thirdParty: Server;
let connections = 0;
let before: unknown;

beforeAll(async () => {
  thirdParty = createTcpServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await listen(thirdParty);
  stack = await prepareStack();
  started = await stack.start();
  port = Number(new URL(stack.supervisorUrl).port);
  before = await captureState();
}, 120_000);

afterAll(async () => {
  thirdParty?.close();
  await stack?.remove();
}, 60_000);

/** Basic authentication, as programs use it. */
function withPassword(password: string): Readonly<Record<string, string>> {
  const basic = Buffer.from(`operator:${password}`).toString("base64");
  return { authorization: `Basic ${basic}` };
}

/** Keys, processes, job runs, secrets and history: a successful attempt changes at least one of them. */
async function captureState(): Promise<unknown> {
  const list = await fetch(`${stack.gatewayUrl}/key/list?size=100`, {
    headers: { authorization: `Bearer ${stack.secrets()["masterKey"]}` },
  });
  const restores = await fetch(`${stack.supervisorUrl}/api/jobs/restore/runs`, {
    headers: stack.asOperator(),
  });
  return {
    keys: ((await list.json()) as { readonly keys: unknown }).keys,
    restores: await restores.json(),
    run: stack.run(),
    secrets: stack.secrets(),
    connections,
  };
}

function attempts(): readonly Attempt[] {
  const elsewhere = portOf(thirdParty);
  const databaseUrl = `postgres://postgres@127.0.0.1:${elsewhere}/stolen`;
  return [
    { method: "GET", path: "/" },
    { method: "GET", path: "/api/status" },
    { method: "GET", path: "/readyz" },
    { method: "GET", path: "/metrics" },
    { method: "GET", path: "/keys" },
    { method: "GET", path: "/nothing/here" },
    {
      method: "POST",
      path: "/keys/new",
      headers: FORM,
      body: "key_alias=mine&every_model=all",
    },
    { method: "GET", path: "/me" },
    {
      method: "POST",
      path: "/me/new",
      headers: FORM,
      body: "key_alias=mine&every_model=all",
    },
    { method: "POST", path: "/invitations", headers: FORM, body: "note=me" },
    {
      method: "POST",
      path: "/api/invitations",
      headers: JSON_BODY,
      body: "{}",
    },
    {
      method: "POST",
      path: "/api/jobs/restore/run",
      headers: JSON_BODY,
      body: JSON.stringify({ options: { databaseUrl } }),
    },
    { method: "POST", path: "/api/jobs/postgres-backup/run" },
    { method: "POST", path: "/api/restart/gateway" },
    { method: "POST", path: "/api/sign-in-links" },
    { method: "POST", path: "/api/sign-out-all" },
    {
      method: "POST",
      path: "/api/notes/notes/setup-uri",
      headers: JSON_BODY,
      body: "{}",
    },
    {
      method: "PUT",
      path: "/api/copies/postgres/x/y?key=00000000",
      headers: { "content-type": "application/octet-stream" },
      body: "x",
    },
    { method: "DELETE", path: "/api/silences/1" },
    { method: "POST", path: "/sign-out" },
    { method: "POST", path: "/api/stop" },
  ];
}

/** Sends to an address with exactly these headers, which fetch does not allow but browsers and proxies send. */
function sendTo(
  host: string,
  more: Readonly<Record<string, string>> = {},
  toPort: number = port,
): Send {
  return async ({ method, path, headers, body }) => {
    const answered = Promise.withResolvers<IncomingMessage>();
    const call = request(
      {
        host,
        port: toPort,
        method,
        path,
        agent: false,
        headers: { ...headers, ...more },
      },
      answered.resolve,
    );
    call.once("error", answered.reject);
    call.end(body);
    const answer = await answered.promise;
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      body: await text(answer),
    };
  };
}

/** Asserts that every attempt is denied and changes nothing. */
async function expectDenied(send: Send): Promise<void> {
  for (const attempt of attempts()) {
    const { status, body } = await send(attempt);
    const what = `${attempt.method} ${attempt.path}: ${body.slice(0, 200)}`;
    expect([401, 403], what).toContain(status);
    expect(body, what).not.toContain("sk-");
  }
  expect(await captureState()).toEqual(before);
}

test("another user of this machine, who cannot read secrets.json", async () => {
  // As root the attempts are made by another user; otherwise by a program without credentials.
  const other = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  if ("uid" in other) {
    expect(
      spawnSync("cat", [join(stack.home, "secrets.json")], {
        ...other,
        cwd: "/",
        encoding: "utf8",
      }).stdout,
    ).toBe("");
  }
  await expectDenied(async ({ method, path, headers = {}, body }) => {
    const output = execFileSync(
      "curl",
      [
        "-sS",
        "-X",
        method,
        "-w",
        "\n%{http_code}",
        ...Object.entries(headers).flatMap(([name, value]) => [
          "-H",
          `${name}: ${value}`,
        ]),
        ...(body === undefined ? [] : ["--data-binary", body]),
        `${stack.supervisorUrl}${path}`,
      ],
      { ...other, cwd: "/", encoding: "utf8" },
    );
    const end = output.lastIndexOf("\n");
    return {
      status: Number(output.slice(end + 1)),
      headers: {},
      body: output.slice(0, end),
    };
  });
  // Open routes reveal nothing and change only heartbeats.
  const healthz = await fetch(`${stack.supervisorUrl}/healthz`);
  expect(await healthz.json()).toEqual({ status: "ok" });
  expect((await fetch(`${stack.supervisorUrl}/ping/nothing`)).status).toBe(404);
});

/** The session cookie of a browser that was signed in by a link. */
async function signedInCookie(): Promise<string> {
  const created = await fetch(`${stack.supervisorUrl}/api/sign-in-links`, {
    method: "POST",
    headers: stack.asOperator(),
  });
  const { path } = (await created.json()) as { readonly path: string };
  const opened = await fetch(`${stack.supervisorUrl}${path}`);
  return opened.headers.get("set-cookie")?.split(";")[0] ?? "";
}

test("a page of another origin in the operator's own browser", async () => {
  const cookie = await signedInCookie();
  expect(cookie).toMatch(/^hearth_session/);
  const changes = attempts().filter(({ method }) => method !== "GET");
  const pages: readonly Readonly<Record<string, string>>[] = [
    { origin: "http://evil.example" },
    { origin: "null" },
    // Another program on this machine is another origin but the same site.
    { origin: "http://127.0.0.1:9999", "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
  ];
  for (const foreign of pages) {
    for (const proof of [
      { cookie },
      stack.asOperator(),
      withPassword(stack.secrets()["operatorPassword"] ?? ""),
    ]) {
      for (const attempt of changes) {
        const send = sendTo("127.0.0.1", { ...foreign, ...proof });
        const { status } = await send(attempt);
        expect(status, `${attempt.path} of ${JSON.stringify(foreign)}`).toBe(
          403,
        );
      }
    }
  }
  expect(await captureState()).toEqual(before);
  // The same browser may do so from Hearth's page.
  const own = await sendTo("127.0.0.1", { cookie })({
    method: "GET",
    path: "/api/status",
  });
  expect(own.status).toBe(200);
});

test("an attacker's host name that resolves to this machine (DNS rebinding)", async () => {
  for (const host of [
    "evil.example",
    `evil.example:${port}`,
    "127.0.0.1.nip.io",
  ]) {
    await expectDenied(sendTo("127.0.0.1", { host, origin: `http://${host}` }));
  }
  // Not even with a cookie, which a browser would not send there.
  const cookie = await signedInCookie();
  const host = `evil.example:${port}`;
  const { status } = await sendTo("127.0.0.1", { host, cookie })({
    method: "GET",
    path: "/api/status",
  });
  expect(status).toBe(403);
});

test("headers that claim to come from this machine", async () => {
  const forgeries: readonly Readonly<Record<string, string>>[] = [
    { "x-forwarded-for": "127.0.0.1" },
    { "x-real-ip": "127.0.0.1", via: "1.1 localhost" },
    { forwarded: "for=127.0.0.1;host=localhost;proto=https" },
    { "x-forwarded-host": "localhost", "x-forwarded-proto": "https" },
    { host: "localhost", origin: "http://localhost" },
    { authorization: "Bearer undefined" },
    { cookie: "hearth_session=; hearth_session_4080=" },
    { cookie: `hearth_session_${port}=${"0".repeat(64)}` },
  ];
  for (const forged of forgeries) {
    await expectDenied(sendTo("127.0.0.1", forged));
  }
});

test("a proxy on this machine, such as nginx with only `proxy_pass http://127.0.0.1:4080`", async () => {
  const proxy = createServer((incoming, outgoing) => {
    const { connection: _hop, ...headers } = incoming.headers;
    // By default nginx sends the upstream as Host and `connection: close`, and adds no other header.
    const call = request(
      {
        host: "127.0.0.1",
        port,
        agent: false,
        method: incoming.method,
        path: incoming.url,
        headers: { ...headers, host: `127.0.0.1:${port}`, connection: "close" },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(call);
  });
  const proxied = await listen(proxy);
  try {
    const host = "console.example.org";
    await expectDenied(sendTo("127.0.0.1", { host }, proxied));
    const { status } = await sendTo(
      "127.0.0.1",
      { host, ...stack.asOperator() },
      proxied,
    )({ method: "GET", path: "/api/status" });
    expect(status).toBe(200);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test("containers on a bridge, and those of Docker Desktop, which come from loopback", async () => {
  await expectDenied(
    sendTo("127.0.0.1", { host: `host.docker.internal:${port}` }),
  );
  const own = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === "IPv4" && !each.internal)?.address;
  expect(own, "an address of this machine besides loopback").toBeDefined();
  const watcher = await startAlone({ HEARTH_SUPERVISOR_HOST: "0.0.0.0" });
  try {
    const bridged = sendTo(own ?? "", {}, watcher.port);
    for (const attempt of attempts()) {
      expect((await bridged(attempt)).status, attempt.path).toBe(401);
    }
  } finally {
    await watcher.stop();
  }
});

/** A supervisor in this process that starts no services. */
async function startAlone(env: Readonly<Record<string, string>>): Promise<{
  readonly port: number;
  readonly stop: () => Promise<void>;
}> {
  const place = temporaryHome();
  const umask = process.umask();
  const watcher = await startWatcher({
    home: place.home,
    env: { ...env, HEARTH_SUPERVISOR_PORT: "0" },
    runtime: "none",
    onNotice: () => {},
    onService: () => {},
    onCheck: () => {},
  });
  return {
    port: Number(new URL(watcher.address).port),
    stop: async () => {
      await watcher.stop();
      process.umask(umask);
      place.remove();
    },
  };
}

test("every route except health, heartbeats, the theme, invitations and signing in requires somebody who is signed in", async () => {
  const routes: { readonly method: string; readonly path: string }[] = [];
  const onServer = (message: unknown) => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    fastify.addHook("onRoute", ({ method, url }) => {
      const path = url.replace(/:\w+\??|\*/g, "x");
      for (const each of [method].flat()) {
        routes.push({ method: each, path });
      }
    });
  };
  subscribe("fastify.initialization", onServer);
  const watcher = await startAlone({
    HEARTH_JOBS: "on",
    NOTES_URL: "http://127.0.0.1:1",
    GATEWAY_URL: "http://127.0.0.1:1",
    PROXY_MASTER_KEY: "sk-none",
  });
  try {
    expect(routes.length).toBeGreaterThan(100);
    const send = sendTo("127.0.0.1", {}, watcher.port);
    const open: string[] = [];
    for (const route of routes) {
      const { status } = await send(route);
      if (status !== 401) {
        open.push(`${route.method} ${route.path} ${status}`);
      }
    }
    expect(open.toSorted()).toEqual([
      // The providers with which commands sign in, here none.
      "GET /api/sign-in 200",
      "GET /healthz 200",
      // The token of an invitation is missing.
      "GET /invitation/x 404",
      "GET /ping/x/x 400",
      // With a provider, here none: they begin and end a sign-in there.
      "GET /sign-in/with/x 404",
      "GET /sign-in/with/x/callback 403",
      "HEAD /healthz 200",
      "HEAD /invitation/x 404",
      "HEAD /ping/x/x 400",
      // A provider's tokens are exchanged for a session; these are missing.
      "POST /api/sign-in 400",
      "POST /invitation/x 404",
      "POST /ping/x/x 400",
      "POST /sign-in/with/x/logout 400",
      // Only a cookie of the browser; the page of the sign-in has the switch, too.
      "POST /theme 303",
    ]);
  } finally {
    unsubscribe("fastify.initialization", onServer);
    await watcher.stop();
  }
});

test("a sign-in link works once, a preview does not use it, and guesses are rejected", async () => {
  const link = /http:\/\/127\.0\.0\.1:\d+(\/sign-in\/\S+)/.exec(
    started.output(),
  )?.[1];
  expect(link, started.output()).toBeDefined();
  const path = link ?? "";
  const send = sendTo("127.0.0.1");
  // A preview of the link does not use it up.
  const preview = await sendTo("127.0.0.1", { "sec-purpose": "prefetch" })({
    method: "GET",
    path,
  });
  expect(preview.headers["set-cookie"]).toBeUndefined();
  expect((await send({ method: "HEAD", path })).status).not.toBe(200);
  const first = await send({ method: "GET", path });
  expect(first.status).toBe(200);
  expect(String(first.headers["set-cookie"])).toMatch(
    /HttpOnly; SameSite=Strict/,
  );
  const second = await send({ method: "GET", path });
  expect(second.status).toBe(401);
  expect(second.headers["set-cookie"]).toBeUndefined();
  for (const guess of [
    "",
    "0",
    "0".repeat(48),
    "%00",
    path.slice(9).toUpperCase(),
  ]) {
    expect(
      (await send({ method: "GET", path: `/sign-in/${guess}` })).status,
    ).toBe(401);
  }
});

test("a sign-in link is rejected after ten minutes", async () => {
  const password = "of-the-operator";
  const watcher = await startAlone({ HEARTH_OPERATOR_PASSWORD: password });
  const send = sendTo("127.0.0.1", {}, watcher.port);
  const make = async () => {
    const { body } = await send({
      method: "POST",
      path: "/api/sign-in-links",
      headers: withPassword(password),
    });
    return (JSON.parse(body) as { readonly path: string }).path;
  };
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const [early, late] = [await make(), await make()];
    vi.setSystemTime(Date.now() + 10 * 60_000 - 1);
    expect((await send({ method: "GET", path: early })).status).toBe(200);
    vi.setSystemTime(Date.now() + 1);
    const expired = await send({ method: "GET", path: late });
    expect(expired.status).toBe(401);
    expect(expired.headers["set-cookie"]).toBeUndefined();
  } finally {
    vi.useRealTimers();
    await watcher.stop();
  }
});

test("the password, the token of secrets.json and a session's cookie are accepted, and no other secret", async () => {
  const secrets = stack.secrets();
  const get = async (headers: Readonly<Record<string, string>>) =>
    (
      await sendTo(
        "127.0.0.1",
        headers,
      )({
        method: "GET",
        path: "/api/status",
      })
    ).status;
  const password = secrets["operatorPassword"] ?? "";
  expect(await get(withPassword(password))).toBe(200);
  expect(await get(stack.asOperator())).toBe(200);
  expect(await get({ cookie: await signedInCookie() })).toBe(200);
  for (const wrong of [
    secrets["masterKey"],
    secrets["metricsToken"],
    secrets["operatorPassword"],
    `${secrets["cliToken"]}x`,
  ]) {
    expect(await get({ authorization: `Bearer ${wrong}` })).toBe(401);
  }
  // Without its token /metrics is closed (see the attempts); with it nothing else is open.
  const metrics = async (token: string | undefined) =>
    (
      await sendTo("127.0.0.1", { authorization: `Bearer ${token}` })({
        method: "GET",
        path: "/metrics",
      })
    ).status;
  expect(await metrics(secrets["metricsToken"])).toBe(200);
  expect(await metrics(secrets["masterKey"])).toBe(401);
  // Guessing takes longer each time, but does not delay tokens and links.
  for (let guess = 0; guess < 5; guess += 1) {
    expect(await get(withPassword(`guess-${guess}`))).toBe(401);
  }
  expect(await get(withPassword(password))).toBe(429);
  expect(await get(stack.asOperator())).toBe(200);
  expect(await get({ cookie: await signedInCookie() })).toBe(200);
});

test("not even the operator can restore a backup to another server over the API", async () => {
  const restore = attempts().find(({ path }) => path.includes("/restore/"));
  const headers = { ...restore?.headers, ...stack.asOperator() };
  const started = await fetch(`${stack.supervisorUrl}${restore?.path}`, {
    method: "POST",
    headers,
    body: restore?.body ?? null,
  });
  expect(started.status).toBe(400);
  expect(await started.text()).toContain(
    "unknown option databaseUrl: a restore takes backup and setAside.",
  );
  expect(connections).toBe(0);
});
