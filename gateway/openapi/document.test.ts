import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import {
  redisServerHere,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { hashKey } from "../access/keys.ts";
import { ROUTE_NAMES } from "../access/policy.ts";
import { ROUTES } from "../http/route-table.ts";
import { OPEN_ANSWERS } from "./call-answers.ts";
import type { OpenApiDocument, Operation } from "./document.ts";

let redis: TestRedis | null = null;
let fixture: AdminFixture;
let document: OpenApiDocument;
let ajv: Ajv2020;
/** Operations that answered 200 here. */
const answered = new Set<string>();

beforeAll(async () => {
  if (redisServerHere()) redis = await startRedis();
  fixture = await startAdminFixture(
    "proxy_settings: { cache: true, cache_params: { type: redis } }\n",
    redis === null
      ? {}
      : { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
  );
  document = (await fixture.get(
    "/openapi.json",
    "",
  )) as unknown as OpenApiDocument;
  ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(withoutFurtherFields(document) as object, "document");
});

afterAll(async () => {
  await fixture?.stop();
  await redis?.remove();
});

/** The document lets answers have further fields; here each must be documented. */
function withoutFurtherFields(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutFurtherFields);
  if (typeof part !== "object" || part === null) return part;
  const walked = Object.fromEntries(
    Object.entries(part).map(([name, inner]) => [
      name,
      withoutFurtherFields(inner),
    ]),
  );
  const isClosed =
    walked["type"] === "object" &&
    walked["properties"] !== undefined &&
    walked["additionalProperties"] === undefined;
  return isClosed ? { ...walked, additionalProperties: false } : walked;
}

function operationOf(
  method: string,
  path: string,
): readonly [string, Operation] {
  const [plain = ""] = path.split("?");
  for (const [template, operations] of Object.entries(document.paths)) {
    const matches = new RegExp(
      `^${template.replace(/\{\w+\}/g, "[^/]+")}$`,
    ).test(plain);
    const operation = operations[method.toLowerCase()];
    if (matches && operation !== undefined) return [template, operation];
  }
  throw new Error(`${method} ${path} is not in the document`);
}

function validatorOf(
  method: string,
  template: string,
  status: string,
  contentType: string,
): ValidateFunction {
  const escaped = template.replaceAll("~", "~0").replaceAll("/", "~1");
  const pointer = `document#/paths/${encodeURIComponent(escaped)}/${method.toLowerCase()}/responses/${status}/content/${contentType.replaceAll("/", "~1")}/schema`;
  const found = ajv.getSchema(pointer);
  if (found === undefined) throw new Error(`no schema at ${pointer}`);
  return found;
}

/** One request, whose answer must be as the document says. */
async function ask(
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<Json> {
  const { status, headers, json, text } = await fixture.request(
    method,
    path,
    body,
    key,
  );
  const [contentType = ""] = (headers.get("content-type") ?? "").split(";");
  const [template] = operationOf(method, path);
  const validate = validatorOf(
    method,
    template,
    status === 200 ? "200" : "default",
    contentType,
  );
  const answer: unknown =
    contentType === "application/json" ? JSON.parse(text) : text;
  if (!validate(answer))
    throw new Error(
      `${method} ${path} answered ${text.slice(0, 2_000)}, which is not as documented: ${ajv.errorsText(validate.errors)}`,
    );
  if (status === 200) answered.add(`${method} ${template}`);
  return json;
}

const get = (path: string, key?: string) => ask("GET", path, undefined, key);
const post = (path: string, body: unknown, key?: string) =>
  ask("POST", path, body, key);

test("the document names every route of the policy, each once", () => {
  expect(ROUTES.map(({ name }) => name).sort()).toEqual(
    [...ROUTE_NAMES].sort(),
  );
  const ids = Object.values(document.paths).flatMap((operations) =>
    Object.values(operations).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(JSON.stringify(document)).not.toContain("$defs");
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
  await post(`/key/${hashKey(key)}/reset_spend`, { reset_to: 1 });
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
  await post("/team/member_update", { team_id, user_id: "m1", role: "admin" });
  await fixture.makeKey({ team_id, user_id: "m1" });
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
  await ask("PATCH", "/organization/update", {
    organization_id,
    organization_alias: "The Org",
  });
  await post("/team/new", { team_id: "of-org", organization_id });
  const member = { user_id: "org-member", role: "internal_user" };
  await post("/organization/member_add", { organization_id, member });
  await ask("PATCH", "/organization/member_update", {
    organization_id,
    ...member,
    role: "org_admin",
  });
  await get(`/organization/info?organization_id=${organization_id}`);
  await get("/organization/list");
  await ask("DELETE", "/organization/member_delete", {
    organization_id,
    user_id: "org-member",
  });
  await post("/team/delete", { team_ids: ["of-org"] });
  await post("/organization/new", { organization_id: "other" });
  await post("/organization/delete", { organization_ids: ["other"] });
  await ask("DELETE", "/organization/delete", {
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
  const key = await fixture.makeKey({
    user_id: "spender",
    team_id: "users-team",
    key_alias: "spending",
    soft_budget: 0.0000001,
    tags: ["blue"],
  });
  const prompt = [{ role: "user", content: "hello" }];
  await post("/v1/chat/completions", { model: "mock", messages: prompt }, key);
  // A provider that speaks chat alone: the gateway makes the other shapes itself.
  await fixture.post("/model/new", {
    model_name: "translated",
    provider_params: {
      model: "gemini/mock-model",
      api_base: fixture.providerUrl,
      api_key: "provider-secret-key",
    },
  });
  await post("/v1/completions", { model: "translated", prompt: "hello" }, key);
  await post("/v1/embeddings", { model: "mock", input: ["hello"] }, key);
  const message = { model: "translated", messages: prompt, max_tokens: 20 };
  await post("/v1/messages", message, key);
  await post("/v1/messages/count_tokens", message, key);
  await post("/v1/responses", { model: "translated", input: "hello" }, key);
  await post("/v1/moderations", { model: "mock", input: ["hello"] }, key);
  const picture = { model: "mock", prompt: "a hearth", n: 2 };
  await post("/v1/images/generations", picture, key);
  await get("/v1/models", key);
  await get("/v1/models/mock", key);
  // Refused, in both shapes of errors.
  await post("/v1/chat/completions", { model: "none", messages: prompt }, key);
  await post("/v1/messages", { ...message, model: "none" }, key);
  await fixture.running.gateway.ledger.flush();
  await fixture.running.gateway.refusals.flush();

  await get("/me/usage", key);
  await get("/me/usage");
  await get("/refusals");
  await get("/spend/logs");
  await get("/spend/logs?summarize=true");
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
  ])
    await get(`/global/${report}`);
  for (const by of ["team", "customer", "user", "api_key", "model"])
    await get(`/global/spend/report?group_by=${by}`);
  for (const of of ["user", "team", "tag", "organization"])
    await get(`/${of}/daily/activity`);
});

test("health, cache and configuration answer as documented", async () => {
  for (const path of ["liveliness", "liveness", "readiness"])
    await get(`/health/${path}`, "");
  await get("/health");
  await get("/metrics");
  await get("/cache/ping");
  // Where no redis-server is installed it is refused, as documented.
  await get("/cache/redis/info");
  await post("/cache/delete", { keys: ["proxy.cache:none"] });
  await post("/cache/flushall", {});
  await post("/config/reload", {});
});

test("models answer as documented", async () => {
  const made = await post("/model/new", {
    model_name: "stored",
    litellm_params: {
      model: "openai/stored-model",
      api_base: fixture.providerUrl,
      api_key: "provider-secret-key",
    },
  });
  const { id } = made["model_info"] as { id: Json };
  await get("/model/info");
  await get("/model_group/info");
  await post("/model/update", { model_id: id, model_name: "renamed" });
  await post("/model/delete", { id });
});

test("every route and every operation of the document was answered above", () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(operations).toHaveLength(
    ROUTES.length + Object.keys(OPEN_ANSWERS).length,
  );
  const unanswered = operations.filter((one) => !answered.has(one));
  expect(unanswered).toEqual(redis === null ? ["GET /cache/redis/info"] : []);
});
