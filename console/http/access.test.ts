import type { FastifyInstance, InjectOptions } from "fastify";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import {
  operatorHeaders,
  type Credentials,
} from "../../supervisor/credentials.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { buildTestApi } from "../../test/supervisor/console-api.ts";
import { asOperator, testCredentials } from "../../test/supervisor/operator.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { Attempts } from "./attempts.ts";
import { isOwnHost } from "./own-host.ts";
import { ROUTE_ROLES } from "./route-roles.ts";
import { endStoredSessions } from "../../supervisor/history/sessions.ts";

const password = testCredentials.operatorPassword;
const AFAR = "192.168.1.9";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let credentials: Credentials;
let api: FastifyInstance;

beforeEach(() => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  credentials = testCredentials;
  api = newApi();
});
afterEach(async () => {
  vi.useRealTimers();
  await api.close();
  history.close();
  place.remove();
});

/** The API as after a start of the supervisor. */
function newApi(
  more: Pick<Parameters<typeof buildTestApi>[0], "proxyHops"> = {},
): FastifyInstance {
  return buildTestApi({
    ...more,
    history,
    credentials: () => credentials,
    publicUrl: "https://console.example.org",
  });
}

function ask(options: InjectOptions) {
  return api.inject({
    remoteAddress: AFAR,
    ...options,
    headers: { host: "home-a:4080", ...options.headers },
  });
}

function signIn(given: string, more: Readonly<Record<string, string>> = {}) {
  return ask({
    method: "POST",
    url: "/sign-in",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: "http://home-a:4080",
      ...more,
    },
    payload: new URLSearchParams({
      password: given,
      to: "/spend?a=1",
    }).toString(),
  });
}

/** The cookie header that a browser sends after an answer. */
function cookieOf(answer: {
  readonly headers: Readonly<Record<string, unknown>>;
}): Readonly<Record<string, string>> {
  return { cookie: String(answer.headers["set-cookie"]).split(";")[0] ?? "" };
}

async function statusWith(
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  return (await ask({ url: "/api/history", headers })).statusCode;
}

async function newLink(): Promise<string> {
  const created = await ask({
    method: "POST",
    url: "/api/sign-in-links",
    headers: asOperator,
  });
  expect(created.statusCode).toBe(201);
  return created.json<{ readonly path: string }>().path;
}

const page = { accept: "text/html,application/xhtml+xml" };

test("browsers get the sign-in form, programs an error message", async () => {
  const form = await ask({ url: "/", headers: page });
  expect(form.statusCode).toBe(401);
  expect(form.headers["content-type"]).toContain("text/html");
  expect(form.headers["www-authenticate"]).toBeUndefined();
  expect(form.headers["content-security-policy"]).toContain(
    "default-src 'none'",
  );
  expect(form.body).toContain('action="/sign-in"');
  const program = await ask({ url: "/api/history", headers: page });
  expect(program.headers["www-authenticate"]).toBe('Basic realm="Hearth"');
});

test("what anybody may send is short", async () => {
  const open = Object.entries(ROUTE_ROLES).filter(
    ([name, needed]) =>
      name.startsWith("POST ") && ["public", "sign-in"].includes(needed),
  );
  const statuses: Record<string, number> = {};
  for (const [name] of open) {
    const url = name.slice("POST ".length).replaceAll(/:\w+\??/g, "x");
    if (api.hasRoute({ method: "POST", url: name.slice("POST ".length) })) {
      const payload = { text: "x".repeat(100_000) };
      statuses[name] = (await ask({ method: "POST", url, payload })).statusCode;
    }
  }
  expect(statuses).toEqual({
    "POST /sign-in": 413,
    "POST /sign-in/with/:provider/logout": 413,
    "POST /theme": 413,
    "POST /api/sign-in": 413,
  });
});

test("the password opens a session, in a cookie that scripts and other sites cannot use", async () => {
  const opened = await signIn(password);
  expect(opened.statusCode).toBe(303);
  expect(opened.headers.location).toBe("/spend?a=1");
  const cookie = String(opened.headers["set-cookie"]);
  expect(cookie).toMatch(
    /^hearth_session_4080=[0-9a-f]{48}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
  );
  expect(cookie).not.toContain(password);
  const headers = cookieOf(opened);
  expect(await statusWith(headers)).toBe(200);
  expect(await statusWith({})).toBe(401);
  const gone = await ask({
    method: "POST",
    url: "/sign-out",
    headers: { ...headers, origin: "http://home-a:4080" },
  });
  expect(gone.headers["set-cookie"]).toContain("Max-Age=0");
  expect(await statusWith(headers)).toBe(401);
});

test.each<Readonly<Record<string, string>>>([
  { "x-forwarded-proto": "https" },
  { "x-forwarded-proto": "https, http" },
  { forwarded: 'for=192.168.1.9;proto="https"' },
  {},
])("behind TLS (%j) the cookie is for TLS only", async (headers) => {
  const host = "console.lan";
  const origin = `https://${host}`;
  const opened = await signIn(password, { host, origin, ...headers });
  expect(opened.headers["set-cookie"]).toMatch(/^hearth_session=.*; Secure$/);
});

test("at the configured https address the cookie is for TLS only, whatever a proxy says", async () => {
  const path = await newLink();
  const host = "console.example.org";
  const opened = await ask({ url: path, headers: { ...page, host } });
  expect(opened.headers["set-cookie"]).toMatch(/^hearth_session=.*; Secure$/);
});

test("a sign-in ends the session that the browser had", async () => {
  const first = cookieOf(await signIn(password));
  const second = cookieOf(await signIn(password, first));
  expect(second).not.toEqual(first);
  expect(await statusWith(first)).toBe(401);
  expect(await statusWith(second)).toBe(200);
});

test.each<Readonly<Record<string, string>>>([
  { origin: "http://evil.example" },
  { origin: "null" },
  { "sec-fetch-site": "cross-site" },
])("another site's form (%j) opens no session", async (headers) => {
  expect((await signIn(password, headers)).statusCode).toBe(403);
});

test.each([
  "//evil.example",
  "https://evil.example",
  "/\\evil.example",
  "/sign-in/0123",
  "",
])("signing in does not redirect to %j", async (to) => {
  const opened = await ask({
    method: "POST",
    url: "/sign-in",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: new URLSearchParams({ password, to }).toString(),
  });
  expect(opened.headers.location).toBe("/");
});

describe("a link", () => {
  test("signs in one browser and continues from a page of the console", async () => {
    const path = await newLink();
    const opened = await ask({ url: path, headers: page });
    expect(opened.statusCode).toBe(200);
    expect(opened.headers["refresh"]).toBe("0; url=/");
    expect(opened.headers["cache-control"]).toBe("no-store");
    expect(await statusWith(cookieOf(opened))).toBe(200);
    const again = await ask({ url: path, headers: page });
    expect(again.statusCode).toBe(401);
    expect(again.headers["set-cookie"]).toBeUndefined();
    expect(again.body).toContain("was already used or is older than 10");
    // In a browser that is already signed in, the link redirects.
    const back = await ask({ url: path, headers: cookieOf(opened) });
    expect([back.statusCode, back.headers.location]).toEqual([303, "/"]);
  });

  test("expires after ten minutes and survives a prefetch", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const [first, second] = [await newLink(), await newLink()];
    vi.setSystemTime(Date.now() + 10 * 60_000 - 1);
    for (const headers of [
      { "sec-purpose": "prefetch;prerender" },
      { purpose: "prefetch" },
    ]) {
      expect((await ask({ url: first, headers })).statusCode).toBe(204);
    }
    await ask({ method: "HEAD", url: first });
    expect((await ask({ url: first })).statusCode).toBe(200);
    vi.setSystemTime(Date.now() + 1);
    expect((await ask({ url: second })).statusCode).toBe(401);
  });

  test("names the public address and can be created by the operator only", async () => {
    const link = { method: "POST", url: "/api/sign-in-links" } as const;
    expect((await ask(link)).statusCode).toBe(401);
    expect((await ask({ ...link, headers: asOperator })).json()).toMatchObject({
      publicUrl: "https://console.example.org",
    });
  });
});

describe("a session", () => {
  test("survives a restart of the supervisor, ends after thirty days, and is stored as a hash", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const headers = cookieOf(await signIn(password));
    const rows = JSON.stringify(
      history.db.prepare("SELECT * FROM sessions").all(),
    );
    expect(rows).not.toContain(headers["cookie"]?.split("=")[1]);
    await api.close();
    api = newApi();
    vi.setSystemTime(Date.now() + 30 * DAY_MS - 1);
    expect(await statusWith(headers)).toBe(200);
    vi.setSystemTime(Date.now() + 1);
    expect(await statusWith(headers)).toBe(401);
    // A new session replaces an expired one.
    await signIn(password);
    expect(history.db.prepare("SELECT hash FROM sessions").all()).toHaveLength(
      1,
    );
  });

  test("ends with all sessions and links, even while the supervisor is down", async () => {
    const all = { method: "POST", url: "/api/sign-out-all" } as const;
    const sessions = [
      cookieOf(await signIn(password)),
      cookieOf(await ask({ url: await newLink() })),
    ];
    const link = await newLink();
    expect((await ask(all)).statusCode).toBe(401);
    expect((await ask({ ...all, headers: asOperator })).json()).toEqual({
      ended: 2,
    });
    for (const session of sessions) {
      expect(await statusWith(session)).toBe(401);
    }
    expect((await ask({ url: link })).statusCode).toBe(401);
    await api.close();
    api = newApi();
    for (const session of sessions) {
      expect(await statusWith(session)).toBe(401);
    }

    const later = cookieOf(await signIn(password));
    await api.close();
    endStoredSessions(`${place.directory}/history.db`);
    api = newApi();
    expect(await statusWith(later)).toBe(401);
  });
});

describe("the session of a browser", () => {
  test("ends when the operator password changes, as do links", async () => {
    const session = cookieOf(await signIn(password));
    const link = await newLink();
    credentials = { ...credentials, operatorPassword: "another-password" };
    expect(await statusWith(session)).toBe(401);
    expect((await ask({ url: link })).statusCode).toBe(401);
    expect(await statusWith(asOperator)).toBe(401);
    expect(await statusWith(operatorHeaders("another-password"))).toBe(200);
  });

  test("is separate from that of another supervisor behind the same name", async () => {
    const elsewhere = { cookie: "hearth_session_4081=of-the-other" };
    const own = cookieOf(await signIn(password));
    const both = { cookie: `${elsewhere.cookie}; ${own["cookie"]}` };
    expect(await statusWith(both)).toBe(200);
    const host = "home-a:4081";
    expect(await statusWith({ ...own, host })).toBe(401);
  });
});

test("a browser's form without a session is answered with the sign-in page, a program's request with JSON", async () => {
  const form = {
    method: "POST",
    url: "/services/gateway/restart",
    headers: {
      accept: "text/html,*/*;q=0.8",
      referer: "http://home-a:4080/services/gateway",
    },
  } as const;
  const page = await ask(form);
  expect(page.statusCode).toBe(401);
  // The header would open a dialog of the browser instead.
  expect(page.headers["www-authenticate"]).toBeUndefined();
  expect(page.body).toContain("Your session has ended; nothing was changed.");
  expect(page.body).toContain('name="to" value="/services/gateway"');
  const urlencoded = {
    ...form,
    headers: {
      ...form.headers,
      "content-type": "application/x-www-form-urlencoded",
    },
  };
  const kept = await ask({ ...urlencoded, payload: "a=1&a=%22&b=" });
  expect(kept.statusCode).toBe(401);
  const fields = '[["a","1"],["a","\\""],["b",""]]';
  expect(kept.body.replaceAll("&quot;", '"')).toContain(
    `{"action":"/services/gateway/restart","fields":${fields}}`,
  );
  const reload =
    "To keep your input, sign in in another tab, then reload this page.";
  for (const payload of ["api_key=sk-1&a=1", `a=${"x".repeat(20_000)}`]) {
    const dropped = await ask({ ...urlencoded, payload });
    expect(dropped.body).toContain(reload);
    expect(dropped.body).not.toContain('name="form"');
  }
  const program = await ask({ ...form, headers: { accept: "*/*" } });
  expect(program.statusCode).toBe(401);
  expect(program.headers["www-authenticate"]).toBe('Basic realm="Hearth"');
  const script = await ask({
    ...form,
    headers: { accept: "*/*", "x-requested-with": "fetch" },
  });
  expect(script.statusCode).toBe(401);
  expect(script.headers["www-authenticate"]).toBeUndefined();
  expect(script.body).toContain("Your session has ended: sign in in another");
});

test("after five wrong passwords the correct one is delayed too, by form and by header; tokens, links and other addresses are not", async () => {
  for (let round = 0; round < 5; round += 1) {
    expect((await signIn("wrong")).statusCode).toBe(401);
  }
  const rejected = await signIn(password);
  expect(rejected.statusCode).toBe(429);
  expect(Number(rejected.headers["retry-after"])).toBeGreaterThan(0);
  expect(rejected.body).toContain("Too many failed attempts. Try again in");
  const program = { url: "/api/history", headers: asOperator };
  expect((await ask(program)).statusCode).toBe(429);
  const other = await ask({ ...program, remoteAddress: "192.168.1.10" });
  expect(other.statusCode).toBe(200);
  const token = { authorization: `Bearer ${testCredentials.cliToken}` };
  const created = await ask({
    method: "POST",
    url: "/api/sign-in-links",
    headers: token,
  });
  const { path } = created.json<{ readonly path: string }>();
  expect(await statusWith(cookieOf(await ask({ url: path })))).toBe(200);
});

test("wrong passwords count for the address that a trusted proxy adds, otherwise for the proxy", async () => {
  const attempt = async (caller: string, given: string) =>
    (await signIn(given, { "x-forwarded-for": caller })).statusCode;
  await api.close();
  api = newApi({ proxyHops: 1 });
  for (let round = 0; round < 5; round += 1) {
    expect(await attempt("192.168.1.66", "wrong")).toBe(401);
  }
  expect(await attempt("192.168.1.10, 192.168.1.66", password)).toBe(429);
  expect(await attempt("192.168.1.66, 192.168.1.10", password)).toBe(303);
  await api.close();
  api = newApi();
  for (let round = 0; round < 5; round += 1) {
    expect(await attempt(`192.168.1.${round}`, "wrong")).toBe(401);
  }
  expect(await attempt("192.168.1.10", password)).toBe(429);
});

test("wrong passwords from one /64 of IPv6, or from one IPv4 address in both its forms, count together", async () => {
  const attempt = async (remoteAddress: string, given: string) =>
    (
      await ask({
        method: "POST",
        url: "/sign-in",
        remoteAddress,
        payload: { password: given },
      })
    ).statusCode;
  for (let round = 0; round < 5; round += 1) {
    expect(await attempt(`2001:db8:1:2:${round}::1`, "wrong")).toBe(401);
  }
  expect(await attempt("2001:db8:1:2:ffff::9", password)).toBe(429);
  expect(await attempt("2001:db8:1:3::1", password)).toBe(303);
  for (let round = 0; round < 5; round += 1) {
    expect(await attempt("::ffff:192.168.1.66", "wrong")).toBe(401);
  }
  expect(await attempt("192.168.1.66", password)).toBe(429);
});

test("a wrong token is denied without delaying later requests", async () => {
  const { cliToken, metricsToken } = testCredentials;
  for (const wrong of ["x", "", metricsToken, password, `${cliToken}x`]) {
    for (let round = 0; round < 5; round += 1) {
      expect(await statusWith({ authorization: `Bearer ${wrong}` })).toBe(401);
    }
  }
  expect(await statusWith(asOperator)).toBe(200);
});

test("the wait doubles up to five minutes, and is reset by the right password or after an hour", () => {
  let now = 0;
  const attempts = new Attempts(() => now);
  const waits: number[] = [];
  for (let round = 0; round < 16; round += 1) {
    attempts.failed(AFAR);
    waits.push(attempts.waitOf(AFAR));
  }
  expect(waits.slice(0, 8)).toEqual([0, 0, 0, 0, 2000, 4000, 8000, 16_000]);
  expect(waits.at(-1)).toBe(300_000);
  now += 300_000;
  expect(attempts.waitOf(AFAR)).toBe(0);
  attempts.failed(AFAR);
  expect(attempts.waitOf(AFAR)).toBe(300_000);
  now += HOUR_MS;
  attempts.failed(AFAR);
  expect(attempts.waitOf(AFAR)).toBe(0);
  for (let round = 0; round < 5; round += 1) {
    attempts.failed(AFAR);
  }
  attempts.succeeded(AFAR);
  expect(attempts.waitOf(AFAR)).toBe(0);
});

test.each<[string | undefined, boolean]>([
  ["127.0.0.1:4080", true],
  ["[::1]:4080", true],
  ["localhost:4080", true],
  ["10.0.0.1", true],
  ["home-a:4080", true],
  ["nas.local", true],
  ["console.example.org", true],
  ["console.example.org.:443", true],
  ["evil.example", false],
  ["127.0.0.1.evil.example:4080", false],
  ["local.evil.example", false],
  ["evil.console.example.org", false],
  ["", false],
  ["a b", false],
  [undefined, false],
])("the host %j is the supervisor's own: %j", (host, own) => {
  expect(isOwnHost(host, "https://console.example.org")).toBe(own);
});

test("under an unknown host name a browser gets no form but the name of the setting", async () => {
  const host = "evil.example";
  const shown = await ask({ url: "/", headers: { ...page, host } });
  expect(shown.statusCode).toBe(403);
  expect(shown.body).toContain("SUPERVISOR_PUBLIC_URL");
  expect(shown.body).not.toContain('action="/sign-in"');
  const form = await signIn(password, { host, origin: `http://${host}` });
  expect(form.statusCode).toBe(403);
  const session = cookieOf(await signIn(password));
  expect(await statusWith({ ...session, host })).toBe(403);
  // A program with the password cannot be misled by another site.
  expect(await statusWith({ ...asOperator, host })).toBe(200);
});
