import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { startRelay, type Relay } from "../../test/servers/relay.ts";
import { postgresWire } from "../../test/servers/wire-postgres.ts";

/** Each way of Postgres' notices; far above what a call takes. */
const NOTICE_MS = 80;

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let notices: Relay;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  const direct = new URL(database.url);
  notices = await startRelay(Number(direct.port), postgresWire);
  direct.port = String(notices.port);
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    env: { DATABASE_DIRECT_URL: direct.href },
  });
  notices.slow(NOTICE_MS);
});

afterAll(async () => {
  notices?.restore();
  await gateway?.stop();
  await provider?.close();
  await notices?.close();
  await database?.drop();
});

let prompts = 0;

async function statusOf(key: string, fields = {}): Promise<number> {
  return (await gateway.chat(key, `prompt ${++prompts}`, fields)).status;
}

async function change(path: string, body: unknown): Promise<void> {
  const { status, text } = await gateway.request("POST", path, body);
  expect([path, status, status === 200 ? "" : text]).toEqual([path, 200, ""]);
}

interface Change {
  readonly path: string;
  readonly body: (key: string) => unknown;
  readonly status: number;
}

/** What an admin may do to a key that works, and the status of its next call. */
const CHANGES: readonly Change[] = [
  { path: "/key/regenerate", body: (key) => ({ key }), status: 401 },
  { path: "/key/delete", body: (key) => ({ keys: [key] }), status: 401 },
  { path: "/key/block", body: (key) => ({ key }), status: 401 },
  {
    path: "/key/update",
    body: (key) => ({ key, max_budget: 0 }),
    status: 400,
  },
  { path: "/key/update", body: (key) => ({ key, spend: 100 }), status: 400 },
  {
    path: "/key/update",
    body: (key) => ({ key, models: ["other"] }),
    status: 403,
  },
  {
    path: "/user/update",
    body: () => ({ user_id: "owner", max_budget: 0 }),
    status: 400,
  },
  {
    path: "/budget/update",
    body: () => ({ budget_id: "tier", max_budget: 0 }),
    status: 400,
  },
  {
    path: "/user/delete",
    body: () => ({ user_ids: ["owner"] }),
    status: 401,
  },
];

test.each(CHANGES)(
  "after the answer of POST $path a key's next call gets $status",
  async ({ path, body, status }) => {
    await gateway.request("POST", "/budget/new", { budget_id: "tier" });
    const key = await gateway.createKey({
      user_id: "owner",
      budget_id: "tier",
      ...(status === 400 && path === "/key/update" ? { max_budget: 5 } : {}),
    });
    expect(await statusOf(key)).toBe(200);
    await change(path, body(key));
    expect(await statusOf(key)).toBe(status);
    await gateway.request("POST", "/user/update", {
      user_id: "owner",
      max_budget: null,
    });
    await gateway.request("POST", "/budget/update", {
      budget_id: "tier",
      max_budget: null,
    });
  },
);

test("a blocked team's keys and those of a deleted team stop at once, as does a blocked end user", async () => {
  await change("/team/new", { team_id: "crew" });
  const key = await gateway.createKey({ team_id: "crew" });
  expect(await statusOf(key)).toBe(200);
  await change("/team/block", { team_id: "crew" });
  expect(await statusOf(key)).toBe(401);
  await change("/team/unblock", { team_id: "crew" });
  expect(await statusOf(key)).toBe(200);
  await change("/team/update", { team_id: "crew", max_budget: 0 });
  expect(await statusOf(key)).toBe(400);
  await change("/team/delete", { team_ids: ["crew"] });
  expect(await statusOf(key)).toBe(401);

  const other = await gateway.createKey({});
  expect(await statusOf(other, { user: "guest" })).toBe(200);
  await change("/customer/block", { user_ids: ["guest"] });
  expect(await statusOf(other, { user: "guest" })).toBe(401);
});

test("the new key of a rotation works at once, and the old one for its grace period", async () => {
  const key = await gateway.createKey({});
  expect(await statusOf(key)).toBe(200);
  const rotated = await gateway.request("POST", "/key/regenerate", {
    key,
    grace_period: "1h",
  });
  const renewed = String(rotated.json["key"]);
  expect(await statusOf(renewed)).toBe(200);
  expect(await statusOf(key)).toBe(200);
  await change("/key/delete", { keys: [renewed] });
  expect(await statusOf(renewed)).toBe(401);
  expect(await statusOf(key)).toBe(401);
});

test("without a connection for notices, an answered change is in effect too", async () => {
  const key = await gateway.createKey({});
  expect(await statusOf(key)).toBe(200);
  notices.cut();
  try {
    await change("/key/block", { key });
    expect(await statusOf(key)).toBe(401);
  } finally {
    notices.restore();
    notices.slow(NOTICE_MS);
  }
});
