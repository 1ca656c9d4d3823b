import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Json } from "../../../test/servers/gateway.ts";
import { hashKey } from "../../access/keys.ts";
import { ROUTE_NAMES } from "../../access/policy.ts";
import { OPEN_ROUTES, ROUTES } from "../route-table.ts";

import {
  startDocumentFixture,
  type DocumentFixture,
} from "./document-fixture.ts";

let testbed: DocumentFixture;

beforeAll(async () => {
  testbed = await startDocumentFixture();
});

afterAll(() => testbed?.stop());

const get = (path: string, key?: string) => testbed.get(path, key);
const post = (path: string, body: unknown, key?: string) =>
  testbed.post(path, body, key);

test("the document contains every route of the policy once", () => {
  expect(ROUTES.map(({ name }) => name).sort()).toEqual(
    [...ROUTE_NAMES].sort(),
  );
  const ids = Object.values(testbed.document.paths).flatMap((operations) =>
    Object.values(operations).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(JSON.stringify(testbed.document)).not.toContain("$defs");
});

test("keys answer as documented", async () => {
  const made = await post("/key/generate", {
    key_alias: "documented",
    user_id: "anna",
    max_budget: 5,
    budget_duration: "1d",
    duration: "30d",
    temp_budget_increase: 1,
    temp_budget_expiry: "2099-01-01T00:00:00Z",
    model_max_budget: { mock: 3 },
    metadata: { a: 1 },
  });
  const key = String(made["key"]);
  await post("/team/new", { team_id: "keyed" });
  await post("/key/service-account/generate", { team_id: "keyed" });
  await get(`/key/info?key=${key}`);
  await post("/v2/key/info", { keys: [key] });
  await post("/key/update", { key, rpm_limit: 10 });
  await post("/key/bulk_update", {
    keys: [{ key, tpm_limit: 10 }, { key: "sk-not-there" }],
  });
  await get("/key/list");
  await get("/key/list?return_full_object=true&size=5");
  await get(`/key/usage?key=${key}`);
  await get("/key/aliases");
  await post("/key/block", { key });
  await post("/key/unblock", { key });
  await post("/key/health", {}, key);
  await post(`/key/${hashKey(key)}/reset_spend`, { reset_to: 0 });
  const again = await post("/key/regenerate", { key, grace_period: "1h" });
  const last = await post(`/key/${String(again["key"])}/regenerate`, {});
  await post("/key/delete", { keys: [last["key"]] });
  await get("/key/list?status=deleted&return_full_object=true");
});

test("users answer as documented", async () => {
  await post("/team/new", { team_id: "users-team" });
  await post("/user/new", {
    user_id: "u1",
    user_email: "u1@example.org",
    teams: ["users-team"],
  });
  await post("/user/new", { user_id: "u2", auto_create_key: false });
  await get("/user/info?user_id=u1");
  await get("/user/info");
  await post("/user/update", { user_id: "u1", max_budget: 4 });
  await post("/user/bulk_update", {
    users: [{ user_id: "u1", max_budget: 3 }, { user_id: "nobody-at-all" }],
  });
  await get("/v2/user/info?user_id=u1");
  await get("/user/list?search=u");
  await get("/user/available_roles");
  await post("/user/delete", { user_ids: ["u2"] });
});

test("teams answer as documented", async () => {
  const team_id = "documented";
  await post("/team/new", { team_id, models: ["mock"], max_budget: 9 });
  await post("/team/update", { team_id, team_alias: "The Documented" });
  await post("/team/member_add", {
    team_id,
    member: [{ user_id: "m1" }, { user_email: "m2@example.org" }],
    max_budget_in_team: 2,
  });
  await post("/team/bulk_member_add", {
    team_id,
    members: [{ user_id: "m3", role: "admin" }, { user_id: "m1" }],
  });
  await post(`/team/${team_id}/member/m1/reset_spend`, { reset_to: 0 });
  await post("/team/member_accept", { team_id, user_id: "m1" });
  await post("/team/member_update", { team_id, user_id: "m1", role: "admin" });
  await testbed.gateway.createKey({ team_id, user_id: "m1" });
  await post("/team/key/bulk_update", {
    team_id,
    all_keys_in_team: true,
    update_fields: { max_budget: 5 },
  });
  await get(`/team/info?team_id=${team_id}`);
  await get("/team/list");
  await get("/v2/team/list?search=docu&sort_by=budget_used");
  await post("/team/block", { team_id });
  await post("/team/unblock", { team_id });
  await post("/team/model/add", { team_id, models: ["other"] });
  await post("/team/model/delete", { team_id, models: ["other"] });
  await post("/team/permissions_update", {
    team_id,
    team_member_permissions: ["/key/generate"],
  });
  await get(`/team/permissions_list?team_id=${team_id}`);
  await post("/team/member_delete", { team_id, user_id: "m1" });
  await post("/team/delete", { team_ids: [team_id] });
});

test("organizations, end users, tags and tiers answer as documented", async () => {
  const organization_id = "org";
  await post("/organization/new", { organization_id, max_budget: 5 });
  await testbed.ask("PATCH", "/organization/update", {
    organization_id,
    organization_alias: "The Org",
  });
  await post("/team/new", { team_id: "of-org", organization_id });
  const member = { user_id: "org-member", role: "internal_user" };
  await post("/organization/member_add", { organization_id, member });
  await testbed.ask("PATCH", "/organization/member_update", {
    organization_id,
    ...member,
    role: "org_admin",
  });
  await get(`/organization/info?organization_id=${organization_id}`);
  await post("/organization/info", { organizations: [organization_id] });
  await get("/organization/list");
  await testbed.ask("DELETE", "/organization/member_delete", {
    organization_id,
    user_id: "org-member",
  });
  await post("/team/delete", { team_ids: ["of-org"] });
  await post("/organization/new", { organization_id: "other" });
  await post("/organization/delete", { organization_ids: ["other"] });
  await testbed.ask("DELETE", "/organization/delete", {
    organization_ids: [organization_id],
  });

  await post("/budget/new", { budget_id: "tier", max_budget: 3 });
  await post("/budget/update", { budget_id: "tier", soft_budget: 2 });
  await post("/budget/info", { budgets: ["tier"] });
  await get("/budget/list");
  await post("/customer/new", { user_id: "c1", budget_id: "tier" });
  await post("/customer/update", { user_id: "c1", alias: "One" });
  await get("/customer/info?end_user_id=c1");
  await get("/customer/list");
  await post("/customer/block", { user_ids: ["c1"] });
  await post("/customer/unblock", { user_ids: ["c1"] });
  await post("/customer/delete", { user_ids: ["c1"] });
  await post("/tag/new", { name: "red", max_budget: 3 });
  await post("/tag/update", { name: "red", description: "Of red things." });
  await post("/tag/info", { names: ["red"] });
  await get("/tag/list");
  await post("/tag/delete", { name: "red" });
  await post("/budget/delete", { id: "tier" });
});

test("calls answer as documented, and spend with them", async () => {
  const key = await testbed.gateway.createKey({
    user_id: "spender",
    team_id: "users-team",
    key_alias: "spending",
    soft_budget: 0.0000001,
    tags: ["blue"],
    store_prompts: true,
  });
  const prompt = [{ role: "user", content: "hello" }];
  await post("/v1/chat/completions", { model: "mock", messages: prompt }, key);
  // A provider with chat alone: the gateway produces the other shapes itself.
  await testbed.gateway.post("/model/new", {
    model_name: "translated",
    provider_params: {
      model: "gemini/mock-model",
      api_base: testbed.gateway.providerUrl,
      api_key: "provider-secret-key",
    },
  });
  await post("/v1/completions", { model: "translated", prompt: "hello" }, key);
  await post("/v1/embeddings", { model: "mock", input: ["hello"] }, key);
  const message = { model: "translated", messages: prompt, max_tokens: 20 };
  await post("/v1/messages", message, key);
  await post("/v1/messages/count_tokens", message, key);
  const contents = [{ role: "user", parts: [{ text: "hello" }] }];
  const called = "/v1beta/models/translated:generateContent";
  await post(called, { contents }, key);
  await post("/v1/responses", { model: "translated", input: "hello" }, key);
  await post("/v1/moderations", { model: "mock", input: ["hello"] }, key);
  const picture = { model: "mock", prompt: "a hearth", n: 2 };
  await post("/v1/images/generations", picture, key);
  const form = (path: string, file: string, fields: object = {}) =>
    post(`/v1/${path}`, formOf({ model: "mock", ...fields }, file), key);
  await form("images/edits", "image", { prompt: "a hearth" });
  await form("images/variations", "image");
  await form("audio/transcriptions", "file");
  await form("audio/translations", "file");
  const spoken = { model: "mock", voice: "alloy", response_format: "mp3" };
  await post("/v1/audio/speech", { ...spoken, input: "hello" }, key);
  const ranked = { model: "mock", query: "hello", documents: ["a", "b"] };
  await post("/v1/rerank", { ...ranked, return_documents: true }, key);
  await get("/v1/models", key);
  await get("/v1/models/mock", key);
  // Rejected, in each shape of errors.
  for (const [path, body] of [
    ["/v1/chat/completions", { model: "none", messages: prompt }],
    ["/v1/messages", { ...message, model: "none" }],
    ["/v1beta/models/none:generateContent", { contents }],
  ] as const) {
    expect(await testbed.refused("POST", path, body, key)).toBe(400);
  }
  await testbed.gateway.running.gateway.ledger.flush();
  await testbed.gateway.running.gateway.refusals.flush();
  await testbed.gateway.running.gateway.prompts.flush();

  const { data } = await get("/spend/calls?with_names=true&tag=blue");
  for (const { request_id: id } of data as unknown as readonly Json[]) {
    await get(`/spend/calls/${String(id)}`);
  }
  await get(
    `/spend/calls/${String((data as unknown as readonly Json[]).at(-1)?.["request_id"])}/prompt`,
  );
  await get("/me/usage", key);
  await get("/me/usage");
  await get("/me/calls", key);
  await get("/refusals");
  await get("/spend/logs");
  await get("/spend/logs?summarize=true");
  const now = "start_date=2020-01-01&end_date=2099-01-01";
  await get(`/spend/logs/v2?${now}&page_size=1`);
  await get("/spend/keys");
  await get("/spend/users");
  await get("/spend/users?user_id=spender");
  await get("/spend/tags");
  await post("/spend/calculate", { model: "mock", messages: prompt });
  await get("/spend/check");
  expect(await get("/notices")).not.toEqual([]);
  await get("/audit");
  for (const report of [
    "spend",
    "spend/logs",
    "spend/keys",
    "spend/models",
    "spend/teams",
    "spend/tags",
    "spend/provider",
    "activity",
    "activity/model",
    "activity/cache_hits",
  ]) {
    await get(`/global/${report}`);
  }
  for (const by of ["team", "customer", "user", "api_key", "model"]) {
    await get(`/global/spend/report?group_by=${by}`);
  }
  for (const of of ["user", "team", "tag", "organization", "customer"]) {
    await get(`/${of}/daily/activity`);
    await get(`/${of}/daily/activity/aggregated`);
  }
  await post("/utils/token_counter", { model: "mock", messages: prompt });
  await get("/utils/supported_openai_params?model=mock");
});

test("stored responses and conversations answer as documented", async () => {
  await testbed.gateway.post("/model/new", {
    model_name: "stored-chat",
    provider_params: {
      model: "gemini/mock-model",
      api_base: testbed.gateway.providerUrl,
      api_key: "provider-secret-key",
    },
  });
  const key = await testbed.gateway.createKey({ user_id: "storing" });
  const call = { model: "stored-chat", input: "hello" };
  const { id } = await post("/v1/responses", call, key);
  const path = `/v1/responses/${String(id)}`;
  await get(path, key);
  await get(`${path}/input_items?order=asc&limit=1`, key);
  expect(
    await testbed.refused("GET", `${path}?stream=true`, undefined, key),
  ).toBe(400);
  expect(await testbed.refused("POST", `${path}/cancel`, undefined, key)).toBe(
    400,
  );
  const next = { model: "stored-chat", previous_response_id: id };
  await post("/v1/responses/compact", next, key);
  await post("/v1/responses/input_tokens", { ...next, input: "Hi" }, key);
  await testbed.ask("DELETE", path, undefined, key);
  expect(await testbed.refused("GET", path, undefined, key)).toBe(404);
  const queued = await post(
    "/v1/responses",
    { ...call, background: true },
    key,
  );
  await post(`/v1/responses/${String(queued["id"])}/cancel`, undefined, key);

  const conversation = await post(
    "/v1/conversations",
    { metadata: { a: "b" } },
    key,
  );
  const place = `/v1/conversations/${String(conversation["id"])}`;
  await get(place, key);
  await post(place, { metadata: { c: "d" } }, key);
  const hello = { role: "user", content: "hello" };
  const added = await post(`${place}/items`, { items: [hello] }, key);
  const item = `${place}/items/${String(added["first_id"])}`;
  await get(`${place}/items?limit=5`, key);
  await get(item, key);
  await testbed.ask("DELETE", item, undefined, key);
  await testbed.ask("DELETE", place, undefined, key);
});

test("guardrails answer as documented", async () => {
  await get("/guardrails/list");
  await post("/guardrails/apply_guardrail", {
    guardrail_name: "no-secrets",
    text: "nothing secret",
  });
});

test("health, cache and configuration answer as documented", async () => {
  for (const path of ["liveliness", "liveness", "readiness"]) {
    await get(`/health/${path}`, "");
  }
  await get("/health");
  await get("/health/services?service=prometheus");
  await post("/health/test_connection", { litellm_params: { model: "mock" } });
  await get("/metrics");
  await get("/cache/ping");
  // Where no redis-server is installed it is rejected, as documented.
  if (testbed.redis !== null) {
    await get("/cache/redis/info");
  } else {
    await testbed.refused("GET", "/cache/redis/info");
  }
  await post("/cache/delete", { keys: ["proxy.cache:none"] });
  await post("/cache/flushall", {});
  await post("/config/check", {});
  await post("/config/reload", {});
});

test("instances answer as documented", async () => {
  await get("/instances");
  // One that stopped a minute ago; without Redis there is none.
  const stopped = [Date.now() - 60_000, "gone"] as const;
  const beat = await testbed.redis?.client.zadd(
    "hearth:limits:beats",
    ...stopped,
  );
  const forget = { instance: "gone" };
  if (beat === 1) {
    await post("/instances/forget", forget);
  } else {
    await testbed.refused("POST", "/instances/forget", forget);
  }
});

test("models answer as documented", async () => {
  const made = await post("/model/new", {
    model_name: "stored",
    litellm_params: {
      model: "openai/stored-model",
      api_base: testbed.gateway.providerUrl,
      api_key: "provider-secret-key",
    },
  });
  const { id } = made["model_info"] as { id: Json };
  await get("/model/info");
  await get("/model_group/info");
  await get("/v2/model/info?include_team_models=true&sortBy=created_at");
  await post("/model/update", { model_id: id, model_name: "renamed" });
  await testbed.ask("PATCH", `/model/${String(id)}/update`, {
    litellm_params: { rpm: 10 },
  });
  const access_group = "documented-models";
  await post("/access_group/new", { access_group, model_ids: [id] });
  await get("/access_group/list");
  await get(`/access_group/${access_group}/info`);
  const members = { model_names: ["renamed"] };
  await testbed.ask("PUT", `/access_group/${access_group}/update`, members);
  await testbed.ask("DELETE", `/access_group/${access_group}/delete`);
  await post("/credentials", {
    credential_name: "documented",
    model_id: id,
    credential_info: { description: "Of the tests." },
  });
  await get("/credentials");
  await get("/credentials/by_name/documented");
  await get(`/credentials/by_model/${String(id)}`);
  await testbed.ask("PATCH", "/credentials/documented", {
    credential_values: { api_key: "another-secret-key" },
  });
  await testbed.ask("DELETE", "/credentials/documented");
  await post("/model/block", { model_id: id });
  await post("/model/unblock", { model_id: id });
  await get("/model/statistics");
  await get("/model/history?model=renamed");
  await post("/model/delete", { id });
});

test("access groups answer as documented", async () => {
  await post("/team/new", { team_id: "grouped", team_alias: "Grouped" });
  const key = await testbed.gateway.createKey({ key_alias: "in-group" });
  const { access_group_id: id } = await post("/v1/access_group", {
    access_group_name: "documented",
    access_model_names: ["mock"],
    assigned_team_ids: ["grouped"],
    assigned_key_ids: [key],
  });
  await get("/v1/access_group");
  const path = `/v1/access_group/${String(id)}`;
  await get(path);
  await testbed.ask("PUT", path, { description: "Of the tests." });
  await testbed.ask("DELETE", path);
  expect(await testbed.refused("GET", path)).toBe(404);
});

test("a WebSocket is opened as documented", async () => {
  const { gateway, document, answered } = testbed;
  const { responses } = document.paths["/v1/responses"]?.["get"] ?? {};
  expect(Object.keys(responses ?? {})).toContain("101");
  const socket = new WebSocket(
    `${gateway.url.replace("http", "ws")}/v1/responses`,
    { headers: { authorization: `Bearer ${await gateway.createKey()}` } },
  );
  await once(socket, "open");
  socket.close();
  await once(socket, "close");
  answered.add("GET /v1/responses");
});

test("every route and every operation of the document was answered above", () => {
  const operations = Object.entries(testbed.document.paths).flatMap(
    ([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(operations).toHaveLength(
    ROUTES.length + OPEN_ROUTES.flatMap(({ paths }) => paths).length,
  );
  const unanswered = operations.filter((one) => !testbed.answered.has(one));
  expect(unanswered).toEqual(
    testbed.redis === null
      ? ["GET /cache/redis/info", "POST /instances/forget"]
      : [],
  );
});

function formOf(fields: object, file: string): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, String(value));
  }
  form.append(file, new File(["bytes"], "a.bin"));
  return form;
}
