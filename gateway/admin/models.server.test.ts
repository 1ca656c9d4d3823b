import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { query } from "../database/pool.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let gateway: TestGateway;

const SALT = { HEARTH_SALT_KEY: "the salt key of the tests" };
const SECRET = "provider-key-that-must-stay-secret";

function start(env: Readonly<Record<string, string>> = SALT, more = "") {
  return startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url) + more,
    env,
  });
}

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  gateway = await start();
});

afterAll(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
});

function createModel(fields: Readonly<Record<string, unknown>> = {}) {
  return gateway.request("POST", "/model/new", {
    model_name: "stored",
    litellm_params: {
      model: "openai/stored-model",
      api_base: provider.url,
      api_key: SECRET,
      input_cost_per_token: 0.000001,
      extra_headers: { "x-team": "hidden-header" },
    },
    ...fields,
  });
}

const idOf = (answer: Awaited<ReturnType<typeof createModel>>) =>
  String(answer.json["model_info"]?.["id"]);

test("a new model is called with its key, priced, listed, and its key never shown", async () => {
  const answer = await createModel();
  expect(answer.status).toBe(200);
  const key = await gateway.createKey({});
  const called = await gateway.chat(key, "hello", { model: "stored" });
  expect(called.status).toBe(200);
  expect(called.headers.get("x-hearth-model-id")).toBe(idOf(answer));
  expect(called.headers.get("x-hearth-cost")).toBe("0.00001");
  expect(provider.requests.at(-1)?.headers).toMatchObject({
    authorization: `Bearer ${SECRET}`,
    "x-team": "hidden-header",
  });
  const listed = await gateway.request("GET", "/v1/models", undefined, key);
  expect(listed.text).toContain('"stored"');
  const info = await gateway.request(
    "GET",
    `/v1/model/info?litellm_model_id=${idOf(answer)}`,
  );
  expect(info.json["data"]?.[0]).toMatchObject({
    model_name: "stored",
    litellm_params: { model: "openai/stored-model" },
    model_info: { db_model: true, input_cost_per_token: 0.000001 },
  });
  const groups = await gateway.request("GET", "/model_group/info");
  expect(groups.text).toContain('"model_group":"stored"');
  const kept = await query(
    gateway.running.gateway.pool,
    "SELECT (SELECT json_agg(m)::text FROM models m) || (SELECT json_agg(a)::text FROM audit_log a) AS all",
  );
  for (const text of [
    answer.text,
    info.text,
    groups.text,
    (await gateway.request("GET", "/health?model=stored")).text,
    JSON.stringify(kept),
  ]) {
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain("hidden-header");
  }
});

test("an update changes only the named fields and keeps the key; null resets", async () => {
  const id = idOf(await createModel({ model_name: "changing" }));
  const updated = await gateway.request("POST", "/model/update", {
    model_info: { id, team: "blue" },
    litellm_params: { rpm: 1, input_cost_per_token: null },
  });
  expect(updated.json["litellm_params"]).toEqual({
    model: "openai/stored-model",
    api_base: provider.url,
    rpm: 1,
  });
  const key = await gateway.createKey({});
  expect((await gateway.chat(key, "one", { model: "changing" })).status).toBe(
    200,
  );
  expect(provider.requests.at(-1)?.headers["authorization"]).toBe(
    `Bearer ${SECRET}`,
  );
  expect((await gateway.chat(key, "two", { model: "changing" })).status).toBe(
    429,
  );
});

test("a deleted model is unknown, and its id too", async () => {
  const id = idOf(await createModel({ model_name: "leaving" }));
  expect((await gateway.request("POST", "/model/delete", { id })).status).toBe(
    200,
  );
  const key = await gateway.createKey({});
  const called = await gateway.chat(key, "gone", { model: "leaving" });
  expect(called.status).toBe(400);
  expect((await gateway.request("POST", "/model/delete", { id })).status).toBe(
    404,
  );
});

test.each([
  ["without a provider", { litellm_params: {} }, "model"],
  [
    "an unknown provider",
    { litellm_params: { model: "nobody/m" } },
    "unknown provider",
  ],
  [
    "a reference to a variable",
    {
      litellm_params: {
        model: "openai/m",
        api_base: "http://x.example",
        api_key: "os.environ/DATABASE_URL",
      },
    },
    "must not refer to a variable",
  ],
  [
    "a key over two lines",
    { litellm_params: { model: "openai/m", api_key: "sk-1\nsk-2" } },
    "`litellm_params.api_key` has a character that no key has",
  ],
  [
    "a wrong limit",
    { litellm_params: { model: "openai/m", api_key: "x", rpm: "many" } },
    "`litellm_params.rpm` must be a whole number",
  ],
  [
    "a price that makes costs infinite",
    {
      litellm_params: {
        model: "openai/m",
        api_key: "x",
        input_cost_per_token: 1e306,
      },
    },
    "`litellm_params.input_cost_per_token` must be dollars, a number from 0 to 1000",
  ],
  [
    "such a price in `model_info`",
    {
      litellm_params: { model: "openai/m", api_key: "x" },
      model_info: { input_cost_per_second: 1e306 },
    },
    "`model_info.input_cost_per_second` must be dollars, a number from 0 to 1000",
  ],
  [
    "a misspelled price in `model_info`",
    {
      litellm_params: { model: "openai/m", api_key: "x" },
      model_info: { input_cost_per_tokn: 0.000001 },
    },
    "`model_info.input_cost_per_tokn` is not supported (did you mean `input_cost_per_token`?)",
  ],
])(
  "%s is rejected with a message, and nothing is stored",
  async (_, fields, message) => {
    const answer = await createModel({ model_name: "wrong", ...fields });
    expect(answer.status).toBe(400);
    expect(answer.json["error"]?.["message"]).toContain(message);
    const rows = await query(
      gateway.running.gateway.pool,
      "SELECT 1 FROM models WHERE model_name = 'wrong'",
    );
    expect(rows).toEqual([]);
  },
);

test("unknown parameters are rejected by name, and nothing of them is stored: they may be secrets", async () => {
  const answer = await createModel({
    model_name: "foreign",
    litellm_params: {
      model: "openai/m",
      api_base: provider.url,
      aws_secret_access_key: "aws-secret",
    },
  });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("litellm_params.aws_secret_access_key");
  const [row] = await query<{ all: string | null }>(
    gateway.running.gateway.pool,
    "SELECT (SELECT json_agg(m)::text FROM models m) || (SELECT json_agg(a)::text FROM audit_log a) AS all",
  );
  expect(answer.text + row?.all).not.toContain("aws-secret");
});

test("a model of the file can only be changed in the file; ids are unique", async () => {
  const own = await gateway.request("GET", "/model/info");
  const id = (
    own.json["data"] as unknown as {
      model_info: { id: string; db_model: boolean };
    }[]
  ).find((row) => !row.model_info.db_model)?.model_info.id;
  const updated = await gateway.request("POST", "/model/update", {
    model_info: { id },
    model_name: "other",
  });
  expect(updated.status).toBe(400);
  expect(updated.json["error"]?.["message"]).toContain("configuration file");
  expect((await createModel({ model_info: { id: "twice" } })).status).toBe(200);
  expect((await createModel({ model_info: { id: "twice" } })).status).toBe(409);
});

test("the limits and abilities that a model_info declares are shown, not those of the catalogue", async () => {
  const declared = {
    max_input_tokens: 5_000,
    max_output_tokens: 100,
    supports_vision: true,
    supports_function_calling: false,
  };
  await createModel({
    model_name: "declared",
    litellm_params: {
      model: "openai/gpt-4o",
      api_base: provider.url,
      api_key: "x",
    },
    model_info: { id: "declared-id", ...declared },
  });
  const info = await gateway.request("GET", "/model/info?model_id=declared-id");
  expect(info.json["data"]?.["0"]?.["model_info"]).toMatchObject(declared);
  const group = await gateway.request(
    "GET",
    "/model_group/info?model_group=declared",
  );
  expect(group.json["data"]?.["0"]).toMatchObject(declared);
});

test("an id of no model, or of one that the key may not use, is a 404 that LiteLLM's Terraform provider understands", async () => {
  const key = await gateway.createKey({ models: ["mock"] });
  const stored = idOf(await createModel({ model_name: "hidden" }));
  for (const [method, path, body] of [
    ["GET", "/model/info?litellm_model_id=none", undefined],
    ["GET", "/v1/model/info?model_id=none", undefined],
    ["POST", "/model/update", { model_info: { id: "none" } }],
    ["POST", "/model/delete", { id: "none" }],
    ["POST", "/model/block", { model_id: "none" }],
  ] as const) {
    const { status, json } = await gateway.request(method, path, body);
    expect([path, status]).toEqual([path, 404]);
    expect(json["error"]?.["message"]).toContain("model not found");
  }
  const path = `/model/info?litellm_model_id=${stored}`;
  expect((await gateway.request("GET", path)).status).toBe(200);
  const denied = await gateway.request("GET", path, undefined, key);
  expect(denied.status).toBe(404);
});

test("a caller without management rights reads its own models, without addresses", async () => {
  const key = await gateway.createKey({ models: ["mock"] });
  const info = await gateway.request("GET", "/model/info", undefined, key);
  expect(info.status).toBe(200);
  expect(
    (info.json["data"] as unknown as { model_name: string }[]).map(
      (row) => row.model_name,
    ),
  ).toEqual(["mock"]);
  expect(info.text).not.toContain(provider.url);
  const refused = await gateway.request(
    "POST",
    "/model/new",
    { model_name: "mine", litellm_params: { model: "openai/x" } },
    key,
  );
  expect(refused.status).toBe(403);
});

test("a restart reads the same models; keys sealed with the master key are sealed again once there is a salt key", async () => {
  await gateway.stop();
  gateway = await start({});
  await createModel({ model_name: "under-master" });
  const sealed = async () =>
    (
      await query<{ sealed: string }>(
        gateway.running.gateway.pool,
        "SELECT sealed FROM models WHERE model_name = 'under-master'",
      )
    )[0]?.sealed;
  const before = await sealed();
  const key = await gateway.createKey({});
  const waiting = await gateway.chat(key, "salt", { model: "stored" });
  expect(waiting.json["error"]?.["type"]).toBe("model_pending");
  await gateway.stop();
  gateway = await start();
  expect(await sealed()).not.toBe(before);
  for (const model of ["stored", "under-master"]) {
    expect((await gateway.chat(key, "again", { model })).status).toBe(200);
  }
  await gateway.stop();
  gateway = await start({
    ...SALT,
    PROXY_MASTER_KEY: `${MASTER_KEY}-changed`,
  });
  for (const model of ["stored", "under-master"]) {
    expect((await gateway.chat(key, "changed", { model })).status).toBe(200);
  }
});
