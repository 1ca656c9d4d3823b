import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
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

const SALT = "the salt key of the tests";
const SECRET = "credential-value-that-must-stay-secret";

function start(salt: Readonly<Record<string, string>>) {
  return startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url),
    env: salt,
  });
}

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  gateway = await start({ HEARTH_SALT_KEY: SALT });
});

afterAll(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
});

const rejected = async (
  method: string,
  path: string,
  body?: object,
  key?: string,
) => {
  const { status, json } = await gateway.request(method, path, body, key);
  return { status, ...(json["error"] as object) };
};

const create = (name: string, values: object = {}) =>
  gateway.ask("POST", "/credentials", {
    credential_name: name,
    credential_values: { api_key: SECRET, api_base: provider.url, ...values },
    credential_info: { custom_llm_provider: "openai" },
  });

const addModel = (name: string, params: object, info: object = {}) =>
  gateway.ask("POST", "/model/new", {
    model_name: name,
    litellm_params: { model: "openai/some-model", ...params },
    model_info: info,
  });

/** The headers with which the provider was called. */
async function called(model: string) {
  const { status } = await gateway.chat(
    await gateway.createKey({}),
    `hello ${model}`,
    { model },
  );
  expect([model, status]).toEqual([model, 200]);
  return provider.requests.at(-1)?.headers ?? {};
}

test("models are called with the values of the credential that they name, and their own prevail", async () => {
  await create("shared", { extra_headers: { "x-of": "the credential" } });
  await addModel("plain", { litellm_credential_name: "shared" });
  expect(await called("plain")).toMatchObject({
    authorization: `Bearer ${SECRET}`,
    "x-of": "the credential",
  });
  await addModel("keyed", {
    litellm_credential_name: "shared",
    api_key: "the-models-own",
    base_url: provider.url,
  });
  expect(await called("keyed")).toMatchObject({
    authorization: "Bearer the-models-own",
    "x-of": "the credential",
  });
});

test("a change of a credential is in effect once it is answered; values that are not sent, null or masked stay", async () => {
  await create("changing");
  await addModel("follows", { litellm_credential_name: "changing" });
  await gateway.ask("PATCH", "/credentials/changing", {
    credential_values: { api_key: "a-new-key", api_base: null },
    credential_info: { description: "changed" },
  });
  expect((await called("follows"))["authorization"]).toBe("Bearer a-new-key");
  await gateway.ask("PATCH", "/credentials/changing", {
    credential_values: { api_key: "*****", extra_headers: { "x-more": "1" } },
  });
  expect(await called("follows")).toMatchObject({
    authorization: "Bearer a-new-key",
    "x-more": "1",
  });
  expect(
    await gateway.ask("GET", "/credentials/by_name/changing"),
  ).toMatchObject({
    credential_info: { custom_llm_provider: "openai", description: "changed" },
    credential_values: { api_key: "*****", extra_headers: "*****" },
    source: "db",
  });
  await gateway.ask("PATCH", "/credentials/changing", {
    credential_values_to_delete: ["extra_headers"],
  });
  expect(await called("follows")).not.toHaveProperty("x-more");
});

test("values are encrypted and shown nowhere", async () => {
  await create("hidden");
  const model = await addModel("uses-hidden", {
    litellm_credential_name: "hidden",
  });
  const kept = await query(
    gateway.running.gateway.pool,
    "SELECT (SELECT json_agg(c)::text FROM credentials c) || (SELECT json_agg(m)::text FROM models m) || (SELECT json_agg(a)::text FROM audit_log a) AS all",
  );
  const texts = [JSON.stringify(kept)];
  for (const path of [
    "/credentials",
    "/credentials/by_name/hidden",
    `/credentials/by_model/${String(model["model_id"])}`,
    "/model/info",
    "/v2/model/info",
    "/audit",
    "/health?model=uses-hidden",
  ]) {
    texts.push((await gateway.request("GET", path)).text);
  }
  texts.push(JSON.stringify(model));
  for (const text of texts) {
    expect(text).not.toContain(SECRET);
  }
  expect(texts[1]).toContain('"hidden"');
});

test("a credential in use is not deleted, and the error names the models", async () => {
  await create("in-use");
  const model = await addModel("needs-it", {
    litellm_credential_name: "in-use",
  });
  expect(await rejected("DELETE", "/credentials/in-use")).toMatchObject({
    status: 400,
    param: "credential_name",
    message:
      "The credential in-use is in use by 1 model (needs-it): change or reset their `litellm_credential_name` first.",
  });
  await gateway.ask("PATCH", `/model/${String(model["model_id"])}/update`, {
    litellm_params: { litellm_credential_name: null, api_key: "own" },
  });
  await gateway.ask("DELETE", "/credentials/in-use");
  expect(await rejected("DELETE", "/credentials/in-use")).toMatchObject({
    status: 404,
  });
});

test("a change that would break a model is rejected and changes nothing", async () => {
  await create("needed");
  await gateway.ask("POST", "/model/new", {
    model_name: "own-server",
    litellm_params: {
      model: "my-server/some-model",
      custom_llm_provider: "vllm",
      litellm_credential_name: "needed",
    },
  });
  expect(
    await rejected("PATCH", "/credentials/needed", {
      credential_values_to_delete: ["api_base"],
    }),
  ).toMatchObject({
    status: 400,
    message: expect.stringContaining("Model own-server"),
  });
  expect(await called("own-server")).toMatchObject({
    authorization: `Bearer ${SECRET}`,
  });
});

test.each([
  ["none", {}, "credential_values"],
  ["an empty one", { api_key: "" }, "credential_values"],
  [
    "a misspelt one",
    { api_keys: "k" },
    "credential_values.api_keys",
    "did you mean `api_key`",
  ],
  [
    "one of another provider",
    { aws_access_key_id: "k" },
    "credential_values.aws_access_key_id",
  ],
  ["a masked one", { api_key: "*****" }, "credential_values.api_key"],
  [
    "a variable",
    { api_key: "os.environ/OPENAI_API_KEY" },
    "credential_values.api_key",
    "must not refer to a variable",
  ],
  ["no address", { api_base: "nowhere" }, "api_base"],
  [
    "a shortened key",
    { api_key: "sk-…" },
    "credential_values.api_key",
    "copy the whole key again",
  ],
])("values that are %s are rejected", async (_, values, param, text = "") => {
  expect(
    await rejected("POST", "/credentials", {
      credential_name: "bad",
      credential_values: values,
    }),
  ).toMatchObject({
    status: 400,
    param,
    message: expect.stringContaining(text),
  });
});

test("a name is given once, and a model cannot name an unknown credential", async () => {
  await create("once");
  expect(
    await rejected("POST", "/credentials", {
      credential_name: "once",
      credential_values: { api_key: "k" },
    }),
  ).toMatchObject({ status: 409, param: "credential_name" });
  expect(
    await rejected("POST", "/model/new", {
      model_name: "lost",
      litellm_params: {
        model: "openai/some-model",
        litellm_credential_name: "unknown",
      },
    }),
  ).toMatchObject({
    status: 400,
    param: "litellm_params.litellm_credential_name",
  });
  expect(
    await rejected("PATCH", "/credentials/unknown", { credential_values: {} }),
  ).toMatchObject({ status: 404 });
});

test("a credential is made of the values of a stored model, and not of one of the configuration file", async () => {
  const model = await addModel("source", {
    api_key: SECRET,
    api_base: provider.url,
  });
  await gateway.ask("POST", "/credentials", {
    credential_name: "copied",
    model_id: model["model_id"],
    credential_info: {},
  });
  await addModel("copy", { litellm_credential_name: "copied" });
  expect((await called("copy"))["authorization"]).toBe(`Bearer ${SECRET}`);
  const ofFile = gateway.running.gateway.config.models[0]?.id;
  expect(
    await rejected("POST", "/credentials", {
      credential_name: "of-file",
      model_id: ofFile,
    }),
  ).toMatchObject({ status: 400, param: "model_id" });
});

test("a team's admin can neither use a credential nor send one elsewhere", async () => {
  await create("of-gateway");
  await gateway.ask("POST", "/team/new", { team_id: "crew" });
  const { key } = await gateway.ask("POST", "/user/new", { user_id: "boss" });
  await gateway.ask("POST", "/team/member_add", {
    team_id: "crew",
    member: { user_id: "boss", role: "admin" },
  });
  const boss = String(key);
  expect(
    await rejected(
      "POST",
      "/model/new",
      {
        model_name: "stolen",
        litellm_params: {
          model: "openai/some-model",
          api_key: "own",
          litellm_credential_name: "of-gateway",
        },
        model_info: { team_id: "crew" },
      },
      boss,
    ),
  ).toMatchObject({
    status: 403,
    param: "litellm_params.litellm_credential_name",
  });
  // One that a proxy_admin gave the team.
  const given = await addModel(
    "given",
    { litellm_credential_name: "of-gateway" },
    { team_id: "crew" },
  );
  const path = `/model/${String(given["model_id"])}/update`;
  for (const params of [
    { api_base: "http://elsewhere.example" },
    {
      api_base: "http://elsewhere.example",
      litellm_credential_name: "of-gateway",
      api_key: "own",
    },
    { model: "mistral/other" },
  ]) {
    expect([
      params,
      await rejected("PATCH", path, { litellm_params: params }, boss),
    ]).toMatchObject([
      params,
      { status: 400, param: "litellm_params.litellm_credential_name" },
    ]);
  }
  const limited = await gateway.request(
    "PATCH",
    path,
    { litellm_params: { rpm: 7 } },
    boss,
  );
  expect(limited.status).toBe(200);
  expect(limited.json["litellm_params"]).toMatchObject({
    rpm: 7,
    litellm_credential_name: "of-gateway",
  });
});

test("credentials of another salt key leave their models pending until their values are sent again", async () => {
  await create("sealed");
  await addModel("waits", { litellm_credential_name: "sealed" });
  await gateway.stop();
  gateway = await start({ HEARTH_SALT_KEY: "another salt key of the tests" });
  const key = await gateway.createKey({});
  const waiting = await gateway.chat(key, "hello", { model: "waits" });
  expect(waiting.status).toBe(503);
  expect(waiting.text).toContain("HEARTH_SALT_KEY");
  // Without new values the stored ones stay for the day when the key is back.
  await gateway.ask("PATCH", "/credentials/sealed", { display_name: "Sealed" });
  await gateway.stop();
  gateway = await start({ HEARTH_SALT_KEY: SALT });
  expect((await called("waits"))["authorization"]).toBe(`Bearer ${SECRET}`);
});

test("credentials that the master key sealed are sealed again with a new salt key", async () => {
  await gateway.stop();
  gateway = await start({});
  await create("early");
  await addModel("early", { litellm_credential_name: "early" });
  await gateway.stop();
  gateway = await start({ HEARTH_SALT_KEY: SALT });
  expect((await called("early"))["authorization"]).toBe(`Bearer ${SECRET}`);
  await gateway.stop();
  const sealed = async () =>
    (
      await query<{ sealed: string }>(
        gateway.running.gateway.pool,
        "SELECT sealed FROM credentials WHERE credential_name = 'early'",
      )
    )[0]?.sealed;
  gateway = await start({ HEARTH_SALT_KEY: SALT });
  const again = await sealed();
  await gateway.running.gateway.reloadModels();
  expect(await sealed()).toBe(again);
});
