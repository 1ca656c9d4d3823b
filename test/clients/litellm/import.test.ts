import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { secret } from "../../../gateway/config/secret.ts";
import { importLitellm } from "../../../gateway/import/litellm.ts";
import { startAdminFixture, type AdminFixture } from "../../servers/admin.ts";
import {
  emptyDatabase,
  type ThrowAwayDatabase,
} from "../../servers/database.ts";
import { importedRows } from "../../servers/litellm-database.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../servers/provider.ts";
import { pythonOrLeaveOut } from "../python.ts";
import { migrateAsLitellm } from "./proxy/migrated.ts";

/** A change reaches the gateway by a notification, which takes longer on a busy machine. */
const PATIENT = { timeout: 20_000 };
const MASTER_KEY = "sk-master-key-of-the-litellm-proxy";
const SALT_KEY = "sk-salt-key-of-the-litellm-proxy";
const ANNAS_KEY = "sk-from-litellm-anna";
const TEAMS_KEY = "sk-from-litellm-team";
const BLOCKED_KEY = "sk-from-litellm-blocked";
const PROVIDER_KEY = "sk-provider-key-of-litellm";

vi.setConfig({ testTimeout: 300_000 });

let python: string | null;
let fixture: AdminFixture;
let provider: MockProvider;
let litellm: ThrowAwayDatabase;

// LiteLLM's own proxy creates everything, in a database that its own migrations created.
beforeAll(async () => {
  python = await pythonOrLeaveOut();
  if (python === null) {
    return;
  }
  fixture = await startAdminFixture();
  provider = await startMockProvider();
  litellm = await emptyDatabase();
  await migrateAsLitellm(litellm.url, python);
  await createAtLitellm(python, requests());
}, 600_000);

afterAll(async () => {
  await fixture?.stop();
  await provider?.close();
  await litellm?.drop();
});

/** Calls of LiteLLM's API, in order. */
function requests(): readonly (readonly [path: string, body: object])[] {
  return [
    [
      "/budget/new",
      { budget_id: "tier", max_budget: 10, budget_duration: "30d" },
    ],
    [
      "/user/new",
      {
        user_id: "anna",
        user_email: "Anna@example.org",
        user_role: "internal_user",
        max_budget: 25,
        budget_duration: "30d",
        auto_create_key: false,
      },
    ],
    ["/user/update", { user_id: "anna", spend: 2.5 }],
    [
      "/team/new",
      {
        team_id: "foxes",
        team_alias: "Foxes",
        max_budget: 100,
        members_with_roles: [{ role: "admin", user_id: "anna" }],
        model_aliases: { "house-model": "mock" },
        team_member_permissions: ["/key/generate"],
      },
    ],
    [
      "/key/generate",
      {
        key: ANNAS_KEY,
        key_alias: "of-anna",
        user_id: "anna",
        max_budget: 5,
        budget_duration: "30d",
        models: ["mock", "sealed"],
        metadata: { tags: ["red"] },
        rpm_limit: 100,
        aliases: { mine: "mock" },
      },
    ],
    ["/key/generate", { key: TEAMS_KEY, team_id: "foxes", budget_id: "tier" }],
    ["/key/generate", { key: BLOCKED_KEY, key_alias: "of-nobody" }],
    ["/key/block", { key: BLOCKED_KEY }],
    ["/customer/new", { user_id: "customer", alias: "C", max_budget: 3 }],
    ["/tag/new", { name: "red", description: "Of red things", max_budget: 3 }],
    [
      "/model/new",
      {
        model_name: "sealed",
        litellm_params: {
          model: "openai/gpt-5-mini",
          api_base: provider.url,
          api_key: PROVIDER_KEY,
        },
      },
    ],
    ["/key/update", { key: ANNAS_KEY, spend: 1.5 }],
  ];
}

async function createAtLitellm(
  python: string,
  calls: ReturnType<typeof requests>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "hearth-litellm-proxy-"));
  const config = join(directory, "config.yaml");
  writeFileSync(config, "general_settings: { store_model_in_db: true }\n");
  const program = fileURLToPath(new URL("proxy/create.py", import.meta.url));
  try {
    await new Promise<void>((resolve, reject) => {
      const child = execFile(
        python,
        [program],
        {
          env: {
            PATH: process.env["PATH"] ?? "",
            HOME: directory,
            PYTHONIOENCODING: "utf-8",
            DATABASE_URL: litellm.url,
            LITELLM_MASTER_KEY: MASTER_KEY,
            LITELLM_SALT_KEY: SALT_KEY,
            CONFIG_FILE_PATH: config,
            STORE_MODEL_IN_DB: "True",
            LITELLM_LOCAL_MODEL_COST_MAP: "True",
          },
          maxBuffer: 2 ** 26,
        },
        (error, _, stderr) =>
          error === null
            ? resolve()
            : reject(new Error(stderr.split("\n").slice(-20).join("\n"))),
      );
      child.stdin?.end(JSON.stringify(calls));
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function bring(litellmKeys = [secret(SALT_KEY)], dryRun = false) {
  const { notes, brought } = await importLitellm({
    pool: fixture.pool,
    log: pino({ level: "silent" }),
    litellmUrl: litellm.url,
    windowing: { timeZone: "UTC", proxyDuration: null },
    keeping: {
      config: fixture.running.gateway.config,
      env: {},
      litellmKeys,
    },
    dryRun,
    logs: false,
    now: Date.now(),
    progress: () => undefined,
  });
  return {
    brought,
    remarks: notes.remarks(),
    counts: Object.fromEntries(
      notes.tallies().map(({ kind, brought: count }) => [kind, count]),
    ),
  };
}

test("a model that LiteLLM's own proxy encrypted is left out without its salt key", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  const { counts, remarks } = await bring([], true);
  expect(counts).toMatchObject({ keys: 3, models: 0 });
  expect(remarks).toEqual([
    {
      kind: "left",
      text: expect.stringContaining("LITELLM_SALT_KEY"),
      count: 1,
      examples: ["sealed"],
    },
  ]);
});

test("the database of LiteLLM's own proxy is imported, and a second run changes nothing", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  const { brought, counts, remarks } = await bring();
  // LiteLLM gives an end user and a tag with a budget a tier of their own, and its administrator, who creates the team, joins it.
  expect(counts).toEqual({
    tiers: 3,
    users: 2,
    teams: 1,
    "team members": 2,
    "end users": 1,
    tags: 1,
    keys: 3,
    models: 1,
  });
  expect(remarks).toEqual([]);
  expect(brought).toMatchObject({ payers: 2, dollars: 1.5 });
  expect(await fixture.differences()).toEqual([]);

  const before = await importedRows(fixture.pool);
  const again = await bring();
  expect(again.brought).toMatchObject({ payers: 0, dollars: 0 });
  expect(Object.values(again.counts)).toEqual(Array(8).fill(0));
  expect(await importedRows(fixture.pool)).toEqual(before);
});

test("users, teams, tiers, end users and tags of LiteLLM's own proxy are imported", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  const user = await fixture.get("/user/info?user_id=anna");
  expect(user["user_info"]).toMatchObject({
    user_email: "Anna@example.org",
    user_role: "internal_user",
    spend: 2.5,
    max_budget: 25,
    budget_duration: "30d",
    teams: ["foxes"],
  });
  expect(await fixture.get("/team/info?team_id=foxes")).toMatchObject({
    team_info: {
      team_alias: "Foxes",
      max_budget: 100,
      model_aliases: { "house-model": "mock" },
      team_member_permissions: ["/key/generate"],
    },
    team_memberships: [
      { user_id: "anna", role: "admin", accepted: false },
      { user_id: "default_user_id", role: "admin", accepted: false },
    ],
  });
  expect(
    await fixture.get("/customer/info?end_user_id=customer"),
  ).toMatchObject({ alias: "C", litellm_budget_table: { max_budget: 3 } });
  const tags = await fixture.post("/tag/info", { names: ["red"] });
  expect(tags["red"]).toMatchObject({
    description: "Of red things",
    litellm_budget_table: { max_budget: 3 },
  });
});

test("keys of LiteLLM's own proxy work unchanged, with their limits and spend", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  const { info } = await fixture.get(`/key/info?key=${ANNAS_KEY}`);
  expect(info).toMatchObject({
    key_alias: "of-anna",
    user_id: "anna",
    spend: 1.5,
    max_budget: 5,
    budget_duration: "30d",
    models: ["mock", "sealed"],
    tags: ["red"],
    rpm_limit: 100,
    aliases: { mine: "mock" },
  });
  const team = await fixture.get(`/key/info?key=${TEAMS_KEY}`);
  expect(team["info"]).toMatchObject({
    team_id: "foxes",
    budget_id: "tier",
    litellm_budget_table: { max_budget: 10, budget_duration: "30d" },
  });
  for (const [key, model] of [
    [ANNAS_KEY, "mock"],
    [ANNAS_KEY, "mine"],
    [TEAMS_KEY, "house-model"],
  ] as const) {
    expect((await fixture.chat(key, "hello", { model })).status).toBe(200);
  }
  expect((await fixture.chat(BLOCKED_KEY, "hello")).status).toBe(401);
});

test("a model that LiteLLM's own proxy encrypted is called with its provider key", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  await expect
    .poll(
      async () =>
        (await fixture.chat(ANNAS_KEY, "hello", { model: "sealed" })).status,
      PATIENT,
    )
    .toBe(200);
  expect(provider.requests.at(-1)).toMatchObject({
    headers: { authorization: `Bearer ${PROVIDER_KEY}` },
    body: { model: "gpt-5-mini" },
  });
});

test("a budget of LiteLLM's own proxy continues from what was spent there", async ({
  skip,
}) => {
  if (python === null) {
    return skip();
  }
  await fixture.post("/key/update", { key: ANNAS_KEY, max_budget: 1.4 });
  await expect
    .poll(async () => (await fixture.chat(ANNAS_KEY, "x")).status, PATIENT)
    .toBe(400);
  await fixture.running.gateway.ledger.flush();
  expect(await fixture.differences()).toEqual([]);
});
