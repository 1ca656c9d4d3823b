import { afterAll, beforeAll, expect, test } from "vitest";
import type { Json } from "../../../test/servers/gateway.ts";
import type { Parameter } from "./document.ts";
import type { Schema } from "./json-schemas.ts";
import {
  startDocumentFixture,
  type DocumentFixture,
} from "./document-fixture.ts";

/** Every query parameter and every nullable field is sent at least once. */
let testbed: DocumentFixture;
/** Existing values by the name of the parameter or field. */
let there: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  testbed = await startDocumentFixture();
  await createGroups();
  there = await createCalls();
});

/** An organization, a team, users and tiers. */
async function createGroups(): Promise<void> {
  await testbed.post("/organization/new", { organization_id: "o1" });
  await testbed.post("/team/new", { team_id: "t1", organization_id: "o1" });
  await testbed.post("/user/new", {
    user_id: "anna",
    user_email: "anna@example.org",
    teams: ["t1"],
    auto_create_key: false,
  });
  await testbed.post("/organization/member_add", {
    organization_id: "o1",
    member: { user_id: "anna", role: "internal_user" },
  });
  await testbed.post("/customer/new", { user_id: "anna" });
  await testbed.post("/tag/new", { name: "red" });
  await testbed.post("/budget/new", { budget_id: "tier", max_budget: 9 });
}

/** Keys, a model and calls; returns existing values by the name of the parameter or field. */
async function createCalls(): Promise<typeof there> {
  const made = await testbed.post("/key/generate", {
    user_id: "anna",
    team_id: "t1",
    key_alias: "annas",
    soft_budget: 0.0000001,
    tags: ["red"],
  });
  const gone = await testbed.post("/key/generate", { user_id: "anna" });
  await testbed.post("/key/delete", { keys: [gone["key"]] });
  const model = await testbed.post("/model/new", {
    model_name: "stored",
    provider_params: {
      model: "openai/m",
      api_base: testbed.gateway.providerUrl,
      api_key: "x",
    },
  });
  const called = await testbed.gateway.chat(String(made["key"]), "hello", {
    user: "anna",
  });
  expect(called.status).toBe(200);
  await testbed.gateway.chat(String(made["key"]), "hello", { model: "none" });
  await testbed.gateway.running.gateway.ledger.flush();
  await testbed.gateway.running.gateway.refusals.flush();
  await testbed.post("/model/new", {
    model_name: "translated",
    provider_params: {
      model: "gemini/m",
      api_base: testbed.gateway.providerUrl,
      api_key: "x",
    },
  });
  const followed = await testbed.gateway.request("POST", "/v1/responses", {
    model: "translated",
    input: "hello",
    background: true,
    stream: true,
  });
  const [responseId] = /resp_[0-9a-f]{32}/.exec(followed.text) ?? [];
  const conversation = await testbed.post("/v1/conversations", {});
  const path = `/v1/conversations/${String(conversation["id"])}/items`;
  const items = await testbed.post(path, {
    items: [{ role: "user", content: "hello" }],
  });
  const [item] = items["data"] as unknown as readonly Json[];
  const today = new Date().toISOString().slice(0, "2026-11-21".length);
  return {
    access_group: "none",
    action: "created",
    actor: "anna",
    api_key: made["token"],
    budget_id: "tier",
    conversation_id: conversation["id"],
    customer_id: "anna",
    end_date: today,
    end_user: "anna",
    end_user_id: "anna",
    end_user_ids: "anna",
    error: "no",
    error_code: "400",
    error_message: "no",
    entity: `key:${String(made["token"])}`,
    id: "mock",
    internal_user_id: "anna",
    item_id: item?.["id"],
    key: made["key"],
    key_alias: "annas",
    key_hash: made["token"],
    max_spend: 1,
    min_spend: 0,
    litellm_model_id: model["model_info"]?.["id"],
    model: "mock",
    model_group: "mock",
    modelId: model["model_info"]?.["id"],
    model_id: model["model_info"]?.["id"],
    named: "anna",
    name: "red",
    object_id: "anna",
    object_type: "user",
    org_alias: "The Org",
    org_id: "o1",
    organization_alias: "The Org",
    organization_id: "o1",
    organization_ids: "o1",
    provider: "openai",
    request_id: called.headers.get("x-hearth-call-id"),
    response_id: responseId,
    role: "internal_user",
    search: "ann",
    service: "prometheus",
    session_id: "none",
    sso_user_id: "home:1",
    start_date: today,
    tag: "red",
    tags: "red",
    team: "t1",
    team_alias: "The Team",
    teamId: "t1",
    team_id: "t1",
    team_ids: "t1",
    type: "invalid_request_error",
    user: "anna",
    user_email: "anna",
    user_id: "anna",
    user_ids: "anna",
  };
}

afterAll(() => testbed?.stop());

/** What a route requires with each parameter: a range or a call, and pages within the limit of counted rows. */
const REQUIRED_TOGETHER: Readonly<Record<string, readonly string[]>> = {
  "/spend/logs/v2": ["request_id", "page_size"],
  "/spend/logs/ui": ["request_id", "page_size"],
};

/** Values that only an answer before has: admin/spend/calls.server.test.ts, admin/spend/log-pages.server.test.ts, responses/stored.server.test.ts. */
const FROM_ANSWERS = new Set(["cursor", "after", "older", "newer"]);

/** All values of a choice and a flag, the bounds of a number, or an existing value. */
function valuesOf({ name, schema }: Parameter): readonly unknown[] {
  if (Array.isArray(schema["enum"])) {
    return schema["enum"];
  }
  if (schema["type"] === "boolean") {
    return [true, false];
  }
  if (schema["type"] === "integer") {
    return [schema["minimum"], schema["maximum"]];
  }
  if (name === "sort_by") {
    return ["created_at"];
  }
  if (!(name in there)) {
    throw new Error(`what is a ${name}?`);
  }
  return [there[name]];
}

test("every query parameter is accepted with each of its values", async () => {
  const failed: string[] = [];
  let requests = 0;
  for (const [template, { get }] of Object.entries(testbed.document.paths)) {
    if (get === undefined) {
      continue;
    }
    const parameters = get.parameters ?? [];
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
      String(there[name]),
    );
    const together = REQUIRED_TOGETHER[template] ?? [];
    const required = parameters
      .filter(
        (parameter) =>
          parameter.in === "query" &&
          (parameter.required || together.includes(parameter.name)),
      )
      .map((parameter): [string, string] => [
        parameter.name,
        String(valuesOf(parameter)[0]),
      ]);
    const optional = parameters.filter(
      (parameter) =>
        parameter.in === "query" &&
        !parameter.required &&
        !FROM_ANSWERS.has(parameter.name),
    );
    for (const parameter of optional) {
      for (const value of valuesOf(parameter)) {
        const query = new URLSearchParams([
          ...required.filter(([name]) => name !== parameter.name),
          [parameter.name, String(value)],
        ]);
        requests++;
        await testbed
          .get(`${path}?${query}`)
          .catch((error: Error) => failed.push(error.message));
      }
    }
  }
  expect(failed).toEqual([]);
  expect(requests).toBeGreaterThan(100);
});

function mayBeNull(schema: Schema): boolean {
  const { type, anyOf } = schema;
  return (
    type === "null" ||
    (Array.isArray(type) && type.includes("null")) ||
    (Array.isArray(anyOf) && (anyOf as readonly Schema[]).some(mayBeNull))
  );
}

/** The fields that name the object of an update. */
const NAMED_BY: Readonly<Record<string, readonly string[]>> = {
  "/key/update": ["key"],
  "/user/update": ["user_id"],
  "/team/update": ["team_id"],
  "/team/member_update": ["team_id", "user_id"],
  "/organization/update": ["organization_id"],
  "/customer/update": ["user_id"],
  "/tag/update": ["name"],
  "/budget/update": ["budget_id"],
  "/model/update": ["model_id"],
};

test("every nullable field of an update is reset by null, alone and with the others", async () => {
  const failed: string[] = [];
  let requests = 0;
  for (const [path, names] of Object.entries(NAMED_BY)) {
    const operations = testbed.document.paths[path] ?? {};
    const [method = "post"] = Object.keys(operations);
    const body = operations[method]?.requestBody?.content["application/json"];
    const properties = (body?.schema["properties"] ?? {}) as Readonly<
      Record<string, Schema>
    >;
    const named = Object.fromEntries(names.map((name) => [name, there[name]]));
    const nullable = Object.keys(properties).filter(
      (name) => !names.includes(name) && mayBeNull(properties[name] ?? {}),
    );
    expect(nullable, path).not.toEqual([]);
    for (const fields of [...nullable.map((name) => [name]), nullable]) {
      const nulls = Object.fromEntries(fields.map((name) => [name, null]));
      requests++;
      await testbed
        .ask(method.toUpperCase(), path, { ...named, ...nulls })
        .catch((error: Error) =>
          failed.push(`${fields.join(", ")}: ${error.message}`),
        );
    }
  }
  expect(failed).toEqual([]);
  expect(requests).toBeGreaterThan(80);
});

test("creating with every field null equals creating without fields", async () => {
  for (const [path, named] of [
    ["/key/generate", {}],
    ["/user/new", { user_id: "nobody" }],
    ["/team/new", { team_id: "nothing" }],
    ["/organization/new", { organization_id: "nowhere" }],
    ["/customer/new", { user_id: "noone" }],
    ["/tag/new", { name: "colourless" }],
    ["/budget/new", { budget_id: "free" }],
  ] as const) {
    const body = testbed.document.paths[path]?.["post"]?.requestBody;
    const properties = (body?.content["application/json"]?.schema[
      "properties"
    ] ?? {}) as Readonly<Record<string, Schema>>;
    const nulls = Object.fromEntries(
      Object.entries(properties)
        .filter(([, schema]) => mayBeNull(schema))
        .map(([name]) => [name, null]),
    );
    await testbed.post(path, { ...nulls, ...named });
  }
});
