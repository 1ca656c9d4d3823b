import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: "*"
    provider_params: { model: "openai/*", api_base: ${url}, api_key: x }
`,
    ),
  );
});

afterAll(() => testbed?.stop());

const LONG = randomBytes(1_500).toString("hex");

/** Names that the ledger's indexes cannot hold, and part of the error. */
const UNSTORABLE = [
  [`openai/${LONG}`, "at most 256 bytes"],
  // 255 characters, and three times as many bytes.
  ["漢".repeat(255), "at most 256 bytes"],
  ["nul\0", "cannot be stored"],
  ["half \ud800 a pair", "cannot be stored"],
] as const;

test.each(UNSTORABLE)(
  "a name that the ledger cannot hold is rejected before a provider is called (%#)",
  async (name, reason) => {
    const { gateway, provider } = testbed;
    const key = await gateway.createKey({});
    const requestsBefore = provider.requests.length;
    for (const [field, fields] of [
      ["model", { model: name }],
      ["user", { model: "mock", user: name }],
      ["tags", { model: "mock", tags: [name] }],
      ["tags", { model: "mock", metadata: { tags: ["red", name] } }],
      ["fallbacks", { model: "mock", fallbacks: [name] }],
    ] as const) {
      const answer = await gateway.chat(key, "hello", fields);
      expect([field, answer.status]).toEqual([field, 400]);
      const error = answer.json["error"];
      expect(error?.["param"]).toBe(field);
      if (field !== "fallbacks") {
        expect(error?.["message"]).toContain(reason);
      }
      expect(answer.text.length).toBeLessThan(500);
    }
    expect(provider.requests.length).toBe(requestsBefore);
  },
);

test("a key or a team whose stored tags the ledger cannot hold can still make calls", async () => {
  const { gateway } = testbed;
  const { ledger, pool } = gateway.running.gateway;
  await gateway.request("POST", "/team/new", { team_id: "tagged" });
  const key = await gateway.createKey({ team_id: "tagged" });
  const tag = "漢".repeat(200);
  for (const table of ["keys", "teams"]) {
    await query(pool, `UPDATE ${table} SET tags = $1 WHERE team_id = $2`, [
      [`${table} ${tag}`],
      "tagged",
    ]);
  }
  const answer = await gateway.chat(key, "hello", { tags: ["sent"] });
  expect([answer.status, answer.text.slice(0, 200)]).toEqual([
    200,
    expect.any(String),
  ]);
  await ledger.flush();
  const [row] = await query<{ tags: readonly string[] }>(
    pool,
    "SELECT tags FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
  expect(row?.tags).toEqual([
    expect.stringMatching(/^keys 漢+~[0-9a-f]{16}$/),
    expect.stringMatching(/^teams 漢+~[0-9a-f]{16}$/),
    "sent",
  ]);
});

test("an alias of a key cannot lead to a model that the ledger cannot hold", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ aliases: { mine: `openai/${LONG}` } });
  const answer = await gateway.chat(key, "hello", { model: "mine" });
  expect(answer.status).toBe(400);
});

test("a model of the longest name is called and recorded", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({});
  const model = `openai/${"漢".repeat(83)}`;
  expect(Buffer.byteLength(model)).toBe(256);
  const answer = await gateway.chat(key, "hello", { model, user: model });
  expect(answer.status).toBe(200);
  const { ledger, pool } = gateway.running.gateway;
  await ledger.flush();
  const [row] = await query(
    pool,
    "SELECT model_group, end_user, status FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
  expect(row).toEqual({
    model_group: model,
    end_user: model,
    status: "success",
  });
});

test("an admin cannot create an object whose name the ledger cannot hold", async () => {
  const { gateway } = testbed;
  const params = { model: "openai/m", api_base: "http://127.0.0.1:9/v1" };
  for (const [name, reason] of UNSTORABLE) {
    for (const [path, body] of [
      ["/model/new", { model_name: name, provider_params: params }],
      [
        "/model/new",
        {
          model_name: "m",
          provider_params: params,
          model_info: { id: name },
        },
      ],
      ["/user/new", { user_id: name }],
      ["/team/new", { team_id: name }],
      ["/customer/new", { user_id: name }],
      ["/tag/new", { name }],
      ["/key/generate", { key_alias: name }],
    ] as const) {
      const { status, json, text } = await gateway.request("POST", path, body);
      expect([path, status, text.slice(0, 300)]).toEqual([
        path,
        400,
        expect.stringMatching(/at most 256|cannot be stored/),
      ]);
      expect(json["error"]?.["param"], reason).not.toBeNull();
    }
  }
});

/** Properties of every JavaScript object: names that must not be found by a lookup. */
const OF_OBJECTS = ["constructor", "toString", "__proto__", "hasOwnProperty"];

test.each(OF_OBJECTS)(
  "a model named %s works like any other",
  async (model) => {
    const { gateway } = testbed;
    const key = await gateway.createKey({
      aliases: { mine: "mock" },
      model_max_budget: { mock: 3 },
      model_rpm_limit: { other: 3 },
      ...(model === "__proto__" ? {} : { model_tpm_limit: { [model]: 1e6 } }),
    });
    const answer = await gateway.chat(key, "hello", { model });
    expect([answer.status, answer.text.slice(0, 200)]).toEqual([
      200,
      expect.any(String),
    ]);
    expect(answer.headers.get("x-hearth-model-group")).toBe(model);
    const usage = await gateway.request("GET", "/me/usage", undefined, key);
    expect(usage.status).toBe(200);
    const shown = await gateway.request("GET", `/v1/models/${model}`);
    expect(shown.status).toBe(200);
  },
);

test.each(OF_OBJECTS)(
  "an allowed route named %s is rejected, and as a path allows nothing",
  async (route) => {
    const { gateway } = testbed;
    const named = { allowed_routes: [route] };
    const rejected = await gateway.request("POST", "/key/generate", named);
    expect(rejected.status).toBe(400);
    const key = await gateway.createKey({ allowed_routes: [`/${route}`] });
    expect((await gateway.chat(key, "hello")).status).toBe(403);
    const info = await gateway.request("GET", "/key/info", undefined, key);
    expect(info.status).toBe(403);
  },
);

test("a model named like an object's property has no fallbacks unless configured", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({});
  for (const model of OF_OBJECTS) {
    const answer = await gateway.chat(key, '[mock]{"status":500}', {
      model,
      num_retries: 0,
    });
    expect(answer.json["error"]?.["type"]).toMatch(
      /^(upstream_error|no_deployments_available)$/,
    );
  }
});
