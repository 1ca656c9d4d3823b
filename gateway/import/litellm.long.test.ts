import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { programEnv } from "../../test/servers/program-env.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { MASTER_KEY } from "../../test/servers/gateway.ts";
import {
  importedRows,
  litellmHash,
  makeLitellmTables,
  USUAL_DATA,
} from "../../test/servers/litellm-database.ts";
import { query } from "../database/pool.ts";
import { importLitellm } from "./litellm.ts";
import type { Tally } from "./import-notes.ts";

/** A change reaches the gateway by a notification, which takes longer on a busy machine. */
const PATIENT = { timeout: 20_000 };

// A thousand keys and thousands of log rows take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let fixture: AdminFixture;
let litellm: Awaited<ReturnType<typeof makeLitellmTables>>;

beforeAll(async () => {
  fixture = await startAdminFixture();
  litellm = await makeLitellmTables(fixture.databaseUrl);
  await litellm.run(USUAL_DATA);
  await litellm.run(
    `UPDATE "LiteLLM_UserTable" SET metadata = '{"scim_active": false}' WHERE user_id = 'user-21'`,
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_SpendLogs" (request_id, call_type, api_key, spend, prompt_tokens, completion_tokens, "startTime", "endTime", model, model_group, "user", status, cache_hit, request_tags, metadata)
       SELECT 'chatcmpl-' || n, 'acompletion', $1, 0.0001, 10, 4, now() - n * interval '20 minutes', now() - n * interval '20 minutes' + interval '1 second',
         'mock-model', 'mock', 'user-10', CASE WHEN n % 10 = 0 THEN 'failure' ELSE 'success' END, '', '["red"]',
         CASE WHEN n % 10 = 0 THEN '{"error_information": {"error_code": "500"}}'::jsonb ELSE '{}' END
       FROM generate_series(1, 2500) n`,
    [litellmHash("sk-litellm-key-10")],
  );
});

afterAll(async () => {
  await litellm?.close();
  await fixture?.stop();
});

async function bring(options: { dryRun?: boolean; logs?: boolean } = {}) {
  const { notes, brought } = await importLitellm({
    pool: fixture.pool,
    log: pino({ level: "silent" }),
    litellmUrl: litellm.url,
    windowing: { timeZone: "UTC", proxyDuration: null },
    keeping: {
      config: fixture.running.gateway.config,
      env: {},
      litellmKeys: [],
    },
    dryRun: options.dryRun ?? false,
    logs: options.logs ?? false,
    now: Date.now(),
    progress: () => undefined,
  });
  return {
    brought,
    remarks: notes.remarks(),
    kinds: Object.fromEntries(
      notes.tallies().map((tally) => [tally.kind, tally]),
    ) as Record<string, Tally>,
  };
}

test("a dry run reports what it would import, and imports nothing", async () => {
  const before = await importedRows(fixture.pool);
  const { kinds, brought } = await bring({ dryRun: true, logs: true });
  expect(brought).toMatchObject({ dryRun: true });
  expect(kinds["keys"]).toMatchObject({ there: 1_000, brought: 1_000 });
  expect(kinds["spend log rows"]).toMatchObject({ brought: 2_500 });
  expect(await importedRows(fixture.pool)).toEqual(before);
});

test("all payers are imported, and a second run changes nothing", async () => {
  const { kinds, brought, remarks } = await bring();
  const expected = {
    tiers: 5,
    organizations: 3,
    users: 200,
    "organization members": 60,
    teams: 30,
    "team members": 200,
    "end users": 20,
    tags: 1,
    keys: 1_000,
  };
  for (const [kind, count] of Object.entries(expected)) {
    expect(kinds[kind]).toEqual({
      kind,
      there: count,
      brought: count,
      known: 0,
      left: 0,
    });
  }
  expect(remarks).toEqual([]);
  expect(brought.dollars).toBeCloseTo(500.5, 6);
  expect(await fixture.differences()).toEqual([]);

  const before = await importedRows(fixture.pool);
  const again = await bring();
  expect(again.kinds["keys"]).toMatchObject({ brought: 0, known: 1_000 });
  expect(again.brought).toMatchObject({ payers: 0, dollars: 0 });
  expect(await importedRows(fixture.pool)).toEqual(before);
});

test("an existing key works, and its budget continues from the old spend", async () => {
  const key = "sk-litellm-key-999";
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]).toMatchObject({
    key_alias: "key-999",
    key_name: "sk-...0999",
    user_id: "user-199",
    team_id: "team-10",
    spend: 0.999,
    max_budget: 5,
    tags: ["from-litellm"],
    model_rpm_limit: { mock: 100 },
  });
  expect((await fixture.chat(key, "hello")).status).toBe(200);
  await fixture.running.gateway.ledger.flush();
  const after = await fixture.get(`/key/info?key=${key}`);
  expect(Number(after["info"]?.["spend"])).toBeGreaterThan(0.999);
  await fixture.post("/key/update", { key, max_budget: 0.99 });
  await expect
    .poll(async () => (await fixture.chat(key, "again")).status, PATIENT)
    .toBe(400);
  expect(await fixture.differences()).toEqual([]);
});

test("windows, members, tiers, roles and rights are imported", async () => {
  const windowed = await fixture.get("/key/info?key=sk-litellm-key-10");
  expect(windowed["info"]).toMatchObject({
    budget_duration: "1mo",
    spend: 0.01,
    budget_reset_at: expect.any(String),
  });
  expect(await fixture.get("/team/info?team_id=team-1")).toMatchObject({
    team_info: {
      team_alias: "Team 1",
      organization_id: "org-1",
      spend: 0.5,
      model_aliases: { "house-model": "mock" },
      team_member_permissions: ["/key/generate"],
    },
    team_memberships: expect.arrayContaining([
      expect.objectContaining({
        user_id: "user-1",
        role: "admin",
        accepted: false,
      }),
      expect.objectContaining({ user_id: "user-31", role: "user" }),
    ]),
  });
  // LiteLLM keeps the models of a member in its tier.
  expect(await fixture.get("/team/info?team_id=team-10")).toMatchObject({
    team_memberships: expect.arrayContaining([
      expect.objectContaining({
        user_id: "user-10",
        budget_id: "tier-1",
        allowed_models: ["mock"],
      }),
    ]),
  });
  expect(await fixture.get("/user/info?user_id=user-1")).toMatchObject({
    user_info: { user_role: "proxy_admin", user_email: "user1@example.org" },
  });
  expect(
    await fixture.get("/customer/info?end_user_id=customer-7"),
  ).toMatchObject({ blocked: true, spend: 1.4, budget_id: "tier-2" });
  expect((await fixture.chat("sk-litellm-key-500", "x")).status).toBe(401);
  expect((await fixture.chat("sk-litellm-key-600", "x")).status).toBe(401);
  const ofDeactivated = await fixture.chat("sk-litellm-key-21", "x");
  expect(ofDeactivated).toMatchObject({ status: 401 });
  expect(ofDeactivated.text).toContain("User=user-21 is blocked");
});

test("the log is imported once, and changes no budget", async () => {
  const spendOf = async () =>
    (await fixture.get("/key/info?key=sk-litellm-key-10"))["info"]?.["spend"];
  const before = await spendOf();
  const { kinds } = await bring({ logs: true });
  expect(kinds["spend log rows"]).toMatchObject({ brought: 2_500 });
  expect(await spendOf()).toBe(before);
  expect(await fixture.differences()).toEqual([]);
  const [row] = (await fixture.get(
    "/spend/logs?request_id=chatcmpl-10",
  )) as unknown as unknown[];
  expect(row).toMatchObject({
    user: "user-10",
    model_group: "mock",
    status: "failure",
    request_tags: ["red"],
    metadata: { error_information: { error_code: "500" } },
  });
  const again = await bring({ logs: true });
  expect(again.kinds["spend log rows"]).toMatchObject({
    brought: 0,
    known: 2_500,
  });
  expect(await fixture.differences()).toEqual([]);
});

test("LiteLLM's spend between two runs is imported by the second, once, in addition to spend in Hearth", async () => {
  const key = "sk-litellm-key-12";
  const hash = litellmHash(key);
  const spends = async () => {
    const [ofKey, ofUser, ofTeam] = await Promise.all([
      fixture.get(`/key/info?key=${key}`),
      fixture.get("/user/info?user_id=user-12"),
      fixture.get("/team/info?team_id=team-13"),
    ]);
    return [
      ofKey["info"]?.["spend"],
      ofUser["user_info"]?.["spend"],
      ofTeam["team_info"]?.["spend"],
    ].map(Number);
  };
  const before = await spends();
  const grown = (...by: readonly number[]) =>
    before.map((spend, at) => expect.closeTo(spend + (by[at] ?? 0), 9));

  await litellm.run(
    `UPDATE "LiteLLM_VerificationToken" SET spend = spend + 2 WHERE token = $1`,
    [hash],
  );
  await litellm.run(
    `UPDATE "LiteLLM_UserTable" SET spend = spend + 2.5 WHERE user_id = 'user-12'`,
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_SpendLogs" (request_id, call_type, api_key, spend, "startTime", "endTime", model, model_group, "user", status)
       VALUES ('chatcmpl-between', 'acompletion', $1, 2, now(), now(), 'mock-model', $2, 'user-12', 'success')`,
    // A name too long for the ledger's indexes.
    [hash, randomBytes(2_000).toString("hex")],
  );
  // One client already uses this gateway.
  await fixture.spend({
    api_key: hash,
    user_id: "user-12",
    team_id: "team-13",
    spend: 0.75,
  });
  expect(await spends()).toEqual(grown(0.75, 0.75, 0.75));

  const second = await bring({ logs: true });
  expect(second.brought).toMatchObject({ payers: 2, dollars: 2 });
  expect(second.kinds["keys"]).toMatchObject({ brought: 0 });
  expect(await spends()).toEqual(grown(2.75, 3.25, 0.75));

  const third = await bring({ logs: true });
  expect(third.brought).toMatchObject({ payers: 0, dollars: 0 });
  expect(await spends()).toEqual(grown(2.75, 3.25, 0.75));

  // A window of LiteLLM's ended: its count since then is new.
  await litellm.run(
    `UPDATE "LiteLLM_VerificationToken" SET spend = 0.5 WHERE token = $1`,
    [hash],
  );
  await bring();
  expect(await spends()).toEqual(grown(3.25, 3.25, 0.75));

  // The same key under another secret.
  await fixture.post("/key/regenerate", {
    key,
    new_key: "sk-another-secret-12",
  });
  await litellm.run(
    `UPDATE "LiteLLM_VerificationToken" SET spend = 0.6 WHERE token = $1`,
    [hash],
  );
  await bring();
  const renewed = await fixture.get("/key/info?key=sk-another-secret-12");
  expect(Number(renewed["info"]?.["spend"])).toBeCloseTo(
    (before[0] ?? 0) + 3.35,
    9,
  );
  expect(await fixture.differences()).toEqual([]);
});

test("reports that spend since an earlier import without recorded counts is not imported", async () => {
  const unrecorded = async () =>
    (await bring()).remarks.filter(({ text }) =>
      text.includes("recorded LiteLLM"),
    );
  await query(
    fixture.pool,
    "DELETE FROM imported_spend WHERE entity = 'user:user-14'",
  );
  await litellm.run(
    `UPDATE "LiteLLM_UserTable" SET spend = spend + 2 WHERE user_id = 'user-14'`,
  );
  expect(await unrecorded()).toMatchObject([
    { kind: "changed", count: 1, examples: ["user-14"] },
  ]);
  expect(await unrecorded()).toEqual([]);
});

test("reports what cannot be imported with the reason, and imports the rest", async () => {
  const hash = (name: string) => litellmHash(name);
  await litellm.run(
    `INSERT INTO "LiteLLM_TeamTable" (team_id, team_alias, models) VALUES ('with/slash', 'Slash', '{}')`,
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_UserTable" (user_id, user_role, spend) VALUES ('litellm-proxy-budget', NULL, 9), ('viewer', 'internal_user_viewer', 0), ('odd', 'customer', 0)`,
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, team_id, spend, metadata, budget_duration, max_budget)
       VALUES ('not-hashed', 'sk-...shed', NULL, NULL, 0, '{}', NULL, NULL),
         ($1, 'sk-...gone', 'orphan', 'no-team', 0, '{}', NULL, NULL),
         ($2, 'sk-...dash', 'ui', 'litellm-dashboard', 0, '{}', NULL, NULL),
         ($3, 'sk-...same', 'key-1', NULL, 0.5, '{"guardrails": ["pii"]}', 'fortnightly', 3)`,
    [hash("sk-orphan"), hash("sk-ui"), hash("sk-same-alias")],
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_DeprecatedVerificationToken" (id, token, active_token_id, revoke_at)
       VALUES ('1', $1, $2, now() + interval '1 hour'), ('2', 'x', 'y', now() - interval '1 hour')`,
    [hash("sk-before-rotation"), hash("sk-litellm-key-1")],
  );
  const { kinds, remarks } = await bring();
  expect(kinds["keys"]).toMatchObject({ brought: 1, known: 1_000, left: 3 });
  expect(kinds["users"]).toMatchObject({ brought: 2, left: 1 });
  expect(kinds["teams"]).toMatchObject({ brought: 0, left: 1 });
  expect(kinds["replaced keys"]).toMatchObject({ brought: 1, left: 1 });
  const texts = remarks.map(({ text }) => text);
  for (const text of [
    "teams: its id contains a slash, which is not allowed",
    "keys: its team no longer exists",
    "keys: a sign-in to LiteLLM's own pages, not a key",
    "keys: its alias is already taken: imported without an alias",
    "keys: guardrails must be configured under the same names: until then its calls are rejected",
    'keys: unknown budget_duration "fortnightly": the budget never resets',
    "users: the role customer becomes internal_user",
  ]) {
    expect(texts).toContain(text);
  }
  expect(await fixture.get("/key/info?key=sk-same-alias")).toMatchObject({
    info: { key_alias: null, spend: 0.5, max_budget: 3 },
  });
  expect((await fixture.chat("sk-before-rotation", "hi")).status).toBe(200);
  expect(await fixture.differences()).toEqual([]);
});

const PROGRAM = fileURLToPath(new URL("./main.ts", import.meta.url));

async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: {
      ...programEnv(),
      DATABASE_URL: fixture.databaseUrl,
      PROXY_MASTER_KEY: MASTER_KEY,
      ...env,
    },
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (data) => (out += String(data)));
  child.stderr.on("data", (data) => (err += String(data)));
  const code = await new Promise<number | null>((resolve) =>
    child.once("close", resolve),
  );
  return { code, out, err };
}

test("the program prints a table, or JSON", async () => {
  const { code, out } = await run(["--dry-run"], {
    LITELLM_DATABASE_URL: litellm.url,
  });
  expect(code).toBe(0);
  expect(out).toMatch(/found +imported +already present +not imported/);
  expect(out).toMatch(/keys +1,004 +0 +1,001 +3/);
  expect(out).toContain("Dry run: nothing was written.");
  expect(out).not.toContain(new URL(litellm.url).password);
  const json = await run(["--dry-run", "--json"], {
    LITELLM_DATABASE_URL: litellm.url,
  });
  expect(JSON.parse(json.out)).toMatchObject({ dryRun: true });
});

test("rejects wrong input with one sentence and without a password", async () => {
  const empty = await throwAwayDatabase();
  const away = new URL(litellm.url);
  away.port = "1";
  const attempt = async (url: string, ...args: string[]) => {
    const { code, err } = await run(
      args,
      url === "" ? {} : { LITELLM_DATABASE_URL: url },
    );
    expect(err).not.toContain(away.password);
    return [code, err.trim()];
  };
  try {
    expect(await attempt("")).toEqual([
      1,
      "hearth: LITELLM_DATABASE_URL is not set: give the address of LiteLLM's database, or a file with it in LITELLM_DATABASE_URL_FILE.",
    ]);
    expect((await attempt("not an address"))[1]).toContain("is not an address");
    expect((await attempt("mysql://u:p@h/d"))[1]).toContain("postgresql://");
    expect((await attempt(away.href))[1]).toContain("cannot be reached");
    expect((await attempt(empty.url))[1]).toContain(
      'has no table "LiteLLM_VerificationToken"',
    );
    expect(await attempt(litellm.url, "--dryrun")).toEqual([
      2,
      expect.stringContaining("Usage: hearth import litellm"),
    ]);
  } finally {
    await empty.drop();
  }
});

test("does not import again what was deleted in Hearth", async () => {
  const made = "sk-litellm-key-21";
  await fixture.post("/key/delete", { keys: [made] });
  await fixture.post("/team/delete", { team_ids: ["team-30"] });
  await fixture.post("/user/delete", { user_ids: ["user-150"] });
  const { kinds, remarks } = await bring();
  for (const [kind, example] of [
    ["keys", "sk-...0021"],
    ["teams", "team-30"],
    ["users", "user-150"],
  ] as const) {
    expect(kinds[kind]).toMatchObject({ brought: 0 });
    expect(remarks).toContainEqual(
      expect.objectContaining({
        kind: "left",
        text: `${kind}: imported earlier and deleted since`,
        examples: expect.arrayContaining([example]),
      }),
    );
  }
  for (const path of [
    `/key/info?key=${made}`,
    "/team/info?team_id=team-30",
    "/user/info?user_id=user-150",
  ]) {
    expect((await fixture.rejected("GET", path)).status).toBe(404);
  }
  expect(await fixture.differences()).toEqual([]);
});

test("reports what LiteLLM blocked, deleted or replaced since an earlier import, which stays as it is here", async () => {
  const since = async () =>
    (await bring()).remarks.filter(({ text }) => text.includes(" here: "));
  expect(await since()).toEqual([]);
  await litellm.run(
    `UPDATE "LiteLLM_UserTable" SET metadata = '{"scim_active": false}' WHERE user_id = 'user-22'`,
  );
  await litellm.run(
    `UPDATE "LiteLLM_TeamTable" SET blocked = true WHERE team_id = 'team-22'`,
  );
  await litellm.run(
    `UPDATE "LiteLLM_VerificationToken" SET blocked = true WHERE key_alias = 'key-22'`,
  );
  await litellm.run(
    `DELETE FROM "LiteLLM_VerificationToken" WHERE key_alias = 'key-23'`,
  );
  const blocked = "blocked at LiteLLM, but not here: ";
  const names = (await since()).map(({ text, examples }) => [text, examples]);
  expect(names).toEqual([
    [expect.stringContaining(`users: ${blocked}`), ["user-22"]],
    [expect.stringContaining(`teams: ${blocked}`), ["team-22"]],
    [expect.stringContaining(`keys: ${blocked}`), ["sk-...0022"]],
    [
      expect.stringContaining("keys: no longer in LiteLLM's database"),
      ["key-23 (sk-...0023)"],
    ],
  ]);
  expect((await fixture.chat("sk-litellm-key-23", "x")).status).toBe(200);
  // Once the operator has decided, nothing is left to report.
  await fixture.post("/user/update", { user_id: "user-22", blocked: true });
  await fixture.post("/team/block", { team_id: "team-22" });
  await fixture.post("/key/block", { key: "sk-litellm-key-22" });
  await fixture.post("/key/delete", { keys: ["sk-litellm-key-23"] });
  expect(await since()).toEqual([]);
});
