import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { startMockProvider } from "../../test/servers/provider.ts";

const PAGE = "app://obsidian.md";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: Awaited<ReturnType<typeof startMockProvider>>;

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
});
afterAll(async () => {
  await provider?.close();
  await database?.drop();
});

async function start(settings: string): Promise<TestGateway> {
  return startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: `${modelYaml(provider.url)}\n${settings}`,
  });
}

/** The headers that decide what a page of this origin may do. */
async function asked(
  gateway: TestGateway,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { origin: PAGE, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await response.arrayBuffer();
  return {
    status: response.status,
    origin: response.headers.get("access-control-allow-origin"),
  };
}

const CHAT = {
  model: "mock",
  messages: [{ role: "user", content: "from a page" }],
};

describe("by default", () => {
  let gateway: TestGateway;
  let key: string;
  beforeAll(async () => {
    gateway = await start("");
    key = await gateway.createKey({});
  });
  afterAll(() => gateway?.stop());

  test("a browser may send a key with a call", async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: {
        origin: PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    expect(response.status).toBe(204);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": "authorization,content-type",
    });
  });

  test.each([{}, { stream: true }, { cache: { "no-cache": true } }])(
    "a page may read an answer, with %o",
    async (fields) => {
      const authorization = `Bearer ${key}`;
      const body = { ...CHAT, ...fields };
      expect(
        await asked(
          gateway,
          "POST",
          "/v1/chat/completions",
          { authorization },
          body,
        ),
      ).toEqual({ status: 200, origin: "*" });
    },
  );

  test("a page may read why it was rejected", async () => {
    expect(
      await asked(gateway, "POST", "/v1/chat/completions", {}, CHAT),
    ).toEqual({ status: 401, origin: "*" });
  });

  test.each([
    ["OPTIONS", 204],
    ["POST", 404],
  ])("a page may read that a path has no route: %s", async (method, status) => {
    const headers = { "access-control-request-method": "POST" };
    expect(await asked(gateway, method, "/api/chat", headers)).toEqual({
      status,
      origin: "*",
    });
  });

  test.each([
    ["OPTIONS", "/key/generate", 404],
    ["OPTIONS", "/key/sk-1/regenerate?x=1", 404],
    ["GET", "/health/readiness", 200],
  ])("no page may use %s %s", async (method, path, status) => {
    const headers = { "access-control-request-method": "POST" };
    expect(await asked(gateway, method, path, headers)).toEqual({
      status,
      origin: null,
    });
  });
});

describe("with cors_origins", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await start(`general_settings: { cors_origins: ["${PAGE}"] }`);
  });
  afterAll(() => gateway?.stop());

  test.each([
    [PAGE, PAGE],
    ["https://other.example.org", null],
  ])("pages of %s may use it: %s", async (origin, allowed) => {
    const headers = { origin, "access-control-request-method": "POST" };
    expect(
      await asked(gateway, "OPTIONS", "/v1/chat/completions", headers),
    ).toEqual({ status: 204, origin: allowed });
    expect(await asked(gateway, "GET", "/v1/models", { origin })).toEqual({
      status: 401,
      origin: allowed,
    });
  });
});
