import type { FastifyInstance, InjectOptions } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { countAttempts } from "./attempts.ts";
import { buildApi } from "./server.ts";
import { openSessions, tokenIn } from "./sessions.ts";
import { openHistory, type History } from "../history.ts";
import { temporaryHome } from "../testing/temporary-home.ts";

const password = "the-operator-password";
const afar = "192.168.1.9";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let api: FastifyInstance;

beforeEach(() => {
  place = temporaryHome();
  history = openHistory(`${place.directory}/history.db`);
  api = buildApi({
    status: () => {
      throw new Error("not asked");
    },
    runtime: () => undefined,
    watch: () => undefined,
    history,
    stop: undefined,
    operatorPassword: password,
  });
});
afterEach(async () => {
  await api.close();
  history.close();
  place.remove();
});

function ask(options: InjectOptions) {
  return api.inject({
    remoteAddress: afar,
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

const page = { accept: "text/html,application/xhtml+xml" };

test("a browser from elsewhere gets the form, a program a sentence", async () => {
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

test("the right password opens a session in a cookie that scripts and other sites cannot use", async () => {
  const opened = await signIn(password);
  expect(opened.statusCode).toBe(303);
  expect(opened.headers.location).toBe("/spend?a=1");
  const cookie = String(opened.headers["set-cookie"]);
  expect(cookie).toMatch(
    /^hearth_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  expect(cookie).not.toContain(password);
  const headers = { cookie: cookie.split(";")[0] ?? "" };
  const url = "/api/history";
  expect((await ask({ url, headers })).statusCode).toBe(200);
  expect((await ask({ url })).statusCode).toBe(401);
  const gone = await ask({
    method: "POST",
    url: "/sign-out",
    headers: { ...headers, origin: "http://home-a:4080" },
  });
  expect(gone.headers["set-cookie"]).toContain("Max-Age=0");
  expect((await ask({ url, headers })).statusCode).toBe(401);
});

test("behind TLS the cookie is for TLS only", async () => {
  const opened = await signIn(password, {
    "x-forwarded-proto": "https",
    origin: "https://home-a:4080",
  });
  expect(opened.headers["set-cookie"]).toMatch(/; Secure$/);
});

test.each<Readonly<Record<string, string>>>([
  { origin: "http://evil.example" },
  { origin: "null" },
  { "sec-fetch-site": "cross-site" },
])("another site's form (%j) signs nobody in", async (headers) => {
  expect((await signIn(password, headers)).statusCode).toBe(403);
});

test.each(["//evil.example", "https://evil.example", "/\\evil.example", ""])(
  "after signing in nobody is sent to %j",
  async (to) => {
    const opened = await ask({
      method: "POST",
      url: "/sign-in",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      payload: new URLSearchParams({ password, to }).toString(),
    });
    expect(opened.headers.location).toBe("/");
  },
);

test("after five wrong passwords even the right one has to wait, by form and by header; others need not", async () => {
  for (let round = 0; round < 5; round += 1)
    expect((await signIn("wrong")).statusCode).toBe(401);
  const refused = await signIn(password);
  expect(refused.statusCode).toBe(429);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect(refused.body).toContain("Too many wrong passwords: try again in");
  const basic = `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`;
  const program = { url: "/api/history", headers: { authorization: basic } };
  expect((await ask(program)).statusCode).toBe(429);
  const other = await ask({ ...program, remoteAddress: "192.168.1.10" });
  expect(other.statusCode).toBe(200);
});

test("the wait doubles up to five minutes, ends with the right password, and is forgotten after an hour", () => {
  let now = 0;
  const attempts = countAttempts(() => now);
  const waits: number[] = [];
  for (let round = 0; round < 16; round += 1) {
    attempts.failed(afar);
    waits.push(attempts.waitOf(afar));
  }
  expect(waits.slice(0, 8)).toEqual([0, 0, 0, 0, 2000, 4000, 8000, 16_000]);
  expect(waits.at(-1)).toBe(300_000);
  now += 300_000;
  expect(attempts.waitOf(afar)).toBe(0);
  attempts.failed(afar);
  expect(attempts.waitOf(afar)).toBe(300_000);
  now += 3_600_000;
  attempts.failed(afar);
  expect(attempts.waitOf(afar)).toBe(0);
  for (let round = 0; round < 5; round += 1) attempts.failed(afar);
  attempts.succeeded(afar);
  expect(attempts.waitOf(afar)).toBe(0);
});

test("a session ends after twelve hours, and only a known token opens anything", () => {
  let now = 0;
  const sessions = openSessions(() => now);
  const token = sessions.begin();
  expect(sessions.isOpen(token)).toBe(true);
  expect(sessions.isOpen("")).toBe(false);
  expect(tokenIn(`a=b; hearth_session=${token}; c=d`)).toBe(token);
  now = 12 * 3_600_000;
  expect(sessions.isOpen(token)).toBe(false);
});

test("without an operator password nobody from elsewhere gets in", async () => {
  const own = buildApi({
    status: () => {
      throw new Error("not asked");
    },
    runtime: () => undefined,
    watch: () => undefined,
    history,
    stop: undefined,
    operatorPassword: undefined,
  });
  const answer = await own.inject({
    url: "/api/history",
    remoteAddress: afar,
    headers: {
      host: "home-a:4080",
      authorization: `Basic ${Buffer.from("operator:undefined").toString("base64")}`,
    },
  });
  expect(answer.statusCode).toBe(401);
  await own.close();
});
