import { createCipheriv, hkdfSync, randomBytes } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { makeLitellmTables } from "../../test/servers/litellm-database.ts";
import { secret } from "../config/secret.ts";
import { query } from "../database/pool.ts";
import { importLitellm } from "./litellm.ts";

/** A change reaches the gateway by a notification, which takes longer on a busy machine. */
const PATIENT = { timeout: 20_000 };
const SALT = "sk-salt-of-the-old-proxy";
const PROVIDER_KEY = "sk-provider-key-of-the-old-proxy";

let fixture: AdminFixture;
let litellm: Awaited<ReturnType<typeof makeLitellmTables>>;

beforeAll(async () => {
  fixture = await startAdminFixture();
  litellm = await makeLitellmTables(fixture.databaseUrl);
  const address = { api_base: fixture.providerUrl, api_key: PROVIDER_KEY };
  await add("shared", "openai/one", {
    ...address,
    rpm: 50,
    guardrails: ["pii"],
  });
  await add("by-credential", "openai/two", {
    litellm_credential_name: "house",
  });
  await add("foreign", "bedrock/three", {});
  await add("by-variable", "openai/four", {
    ...address,
    api_key: "os.environ/AWS_SECRET",
  });
  await fixture.post("/team/new", { team_id: "crew" });
  await add("model_name_crew_1234", "openai/five", address, {
    team_id: "crew",
    team_public_model_name: "of-a-team",
  });
  await add("of-no-team", "openai/six", address, { team_id: "dissolved" });
  await add("paused", "openai/seven", address, {
    blocked: true,
    max_embedding_batch_size: 9,
  });
  await litellm.run(
    `UPDATE "LiteLLM_ProxyModelTable" SET blocked = true WHERE model_name = 'paused'`,
  );
  await litellm.run(
    `INSERT INTO "LiteLLM_CredentialsTable" (credential_id, credential_name, credential_values) VALUES ('1', 'house', $1)`,
    [JSON.stringify(sealed(address))],
  );
});

afterAll(async () => {
  await litellm?.close();
  await fixture?.stop();
});

/** A model as LiteLLM stores it: every text of its parameters encrypted. */
async function add(
  name: string,
  model: string,
  params: Readonly<Record<string, unknown>>,
  info: Readonly<Record<string, unknown>> = {},
) {
  await litellm.run(
    `INSERT INTO "LiteLLM_ProxyModelTable" (model_id, model_name, litellm_params, model_info) VALUES ($1, $2, $3, $4)`,
    [
      `id-${name}`,
      name,
      JSON.stringify(sealed({ model, use_in_pass_through: false, ...params })),
      JSON.stringify({
        id: `id-${name}`,
        db_model: true,
        mode: "chat",
        ...info,
      }),
    ],
  );
}

function sealed(params: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      typeof value === "string" ? sealedText(value) : value,
    ]),
  );
}

function sealedText(text: string): string {
  const nonce = randomBytes(12);
  const key = hkdfSync("sha256", SALT, "", "litellm-at-rest-v3", 32);
  const cipher = createCipheriv("aes-256-gcm", Buffer.from(key), nonce);
  const bytes = [nonce, cipher.update(text), cipher.final()];
  return `v3:gcm:${Buffer.concat([...bytes, cipher.getAuthTag()]).toString("base64url")}`;
}

async function bring(...litellmKeys: readonly string[]) {
  const { notes } = await importLitellm({
    pool: fixture.pool,
    log: pino({ level: "silent" }),
    litellmUrl: litellm.url,
    windowing: { timeZone: "UTC", proxyDuration: null },
    keeping: {
      config: fixture.running.gateway.config,
      env: {},
      litellmKeys: litellmKeys.map(secret),
    },
    dryRun: false,
    logs: false,
    now: Date.now(),
    progress: () => undefined,
  });
  return {
    tally: notes.tallies().find(({ kind }) => kind === "models"),
    remarks: notes.remarks().map(({ text, examples }) => [text, examples]),
  };
}

test("without LiteLLM's key no model is imported, and a remark says what to do", async () => {
  const { tally, remarks } = await bring("sk-a-wrong-one");
  expect(tally).toMatchObject({ there: 7, brought: 0, left: 7 });
  expect(remarks).toContainEqual([
    expect.stringMatching(
      /^models: encrypted: run the import again with .*LITELLM_SALT_KEY.* or .*POST \/model\/new/,
    ),
    ["shared", "by-credential", "foreign", "by-variable", "of-a-team"],
  ]);
  expect(await query(fixture.pool, "SELECT FROM models")).toEqual([]);
});

test("with LiteLLM's key models are imported with their provider keys and answer, and a second run changes nothing", async () => {
  const { tally, remarks } = await bring(SALT);
  expect(tally).toMatchObject({ there: 7, brought: 4, left: 3 });
  expect(remarks).toEqual([
    [expect.stringContaining("guardrails must be configured"), ["shared"]],
    [
      expect.stringContaining('provider "bedrock" is not supported'),
      ["foreign"],
    ],
    [expect.stringContaining("must not refer to a variable"), ["by-variable"]],
    [expect.stringContaining("does not exist here"), ["of-no-team"]],
    ["models: without max_embedding_batch_size: unsupported here", ["paused"]],
  ]);
  const guarded = async () =>
    fixture.chat(await fixture.createKey(), "hi", { model: "shared" });
  await expect
    .poll(async () => (await guarded()).text, PATIENT)
    .toContain("The guardrail pii");
  const [shared] = await query<{ model_id: string }>(
    fixture.pool,
    "SELECT model_id FROM models WHERE model_name = 'shared'",
  );
  await fixture.post("/model/update", {
    model_id: shared?.model_id,
    litellm_params: { guardrails: null },
  });
  for (const model of ["shared", "by-credential"]) {
    await expect
      .poll(
        async () =>
          (await fixture.chat(await fixture.createKey(), "hi", { model }))
            .status,
        PATIENT,
      )
      .toBe(200);
  }
  const paused = await fixture.chat(await fixture.createKey(), "hi", {
    model: "paused",
  });
  expect([paused.status, paused.json["error"]]).toEqual([
    403,
    expect.objectContaining({ type: "model_blocked" }),
  ]);
  const ofTeam = { model: "of-a-team" };
  const crew = await fixture.createKey({ team_id: "crew" });
  expect((await fixture.chat(crew, "hi", ofTeam)).status).toBe(200);
  const other = await fixture.createKey();
  expect((await fixture.chat(other, "hi", ofTeam)).status).toBe(400);
  const rows = await query(
    fixture.pool,
    "SELECT * FROM models ORDER BY model_id",
  );
  const audits = await query(
    fixture.pool,
    "SELECT * FROM audit_log WHERE object_type = 'model'",
  );
  expect(audits).toHaveLength(5);
  expect(JSON.stringify([rows, audits])).not.toContain(PROVIDER_KEY);

  expect((await bring(SALT)).tally).toMatchObject({
    brought: 0,
    known: 4,
    left: 3,
  });
  expect(
    await query(fixture.pool, "SELECT * FROM models ORDER BY model_id"),
  ).toEqual(rows);
});
