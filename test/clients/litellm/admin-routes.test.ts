import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../gateway/access/keys.ts";
import { modelYaml, type TestGateway } from "../../servers/gateway.ts";
import { hasRedisServer } from "../../servers/redis.ts";
import { collected } from "../testbed.ts";
import {
  startTwoInstances,
  WITHIN,
  type TwoInstances,
} from "./two-instances.ts";

/**
 * LiteLLM's documentation: "Model Management", "Credentials", "Access Groups" and the reference of `/team`, `/user` and
 * `/model`. Changes are made on one instance and take effect on both.
 */
describe.runIf(hasRedisServer())("admin routes of LiteLLM's dialect", () => {
  let both: TwoInstances;

  beforeAll(async () => {
    both = await startTwoInstances((url) => modelYaml(url));
  });

  afterAll(() => both?.stop());

  async function send(
    gateway: TestGateway,
    method: string,
    path: string,
    body?: object,
    status = 200,
  ) {
    const answer = await gateway.request(method, path, body);
    expect([method, path, answer.status, answer.text]).toEqual([
      method,
      path,
      status,
      answer.text,
    ]);
    return answer.json;
  }

  const one = (method: string, path: string, body?: object, status?: number) =>
    send(both.one, method, path, body, status);
  const other = (method: string, path: string, body?: object) =>
    send(both.other, method, path, body);

  const clientOf = ({ url }: TestGateway, apiKey: string) =>
    new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });

  const models = async (gateway: TestGateway, key: string) =>
    (await collected(clientOf(gateway, key).models.list()))
      .map(({ id }) => id)
      .sort();

  /** The status of a call, and the key with which the provider was called. */
  async function call(gateway: TestGateway, key: string, model: string) {
    const { status } = await gateway.chat(key, `hello ${model}`, { model });
    const { headers } = both.provider.requests.at(-1) ?? {};
    return [status, headers?.["authorization"]];
  }

  const newModel = (name: string, params: object, info: object = {}) =>
    one("POST", "/model/new", {
      model_name: name,
      litellm_params: { model: "openai/gpt-4o", ...params },
      model_info: info,
    });

  test("a credential serves models on every instance, is replaced on both and never shown", async () => {
    expect(
      await one("POST", "/credentials", {
        credential_name: "azure-or-so",
        credential_values: {
          api_key: "first-secret",
          api_base: both.provider.url,
        },
        credential_info: { custom_llm_provider: "openai" },
      }),
    ).toEqual({ success: true, message: "Credential created successfully" });
    const model = await newModel("by-credential", {
      litellm_credential_name: "azure-or-so",
    });
    const key = await both.one.createKey({});
    for (const gateway of [both.one, both.other]) {
      await expect
        .poll(() => call(gateway, key, "by-credential"), WITHIN)
        .toEqual([200, "Bearer first-secret"]);
    }
    expect(
      await one("PATCH", "/credentials/azure-or-so", {
        credential_info: {},
        credential_values: { api_key: "second-secret" },
      }),
    ).toEqual({ success: true, message: "Credential updated successfully" });
    expect(await call(both.one, key, "by-credential")).toEqual([
      200,
      "Bearer second-secret",
    ]);
    await expect
      .poll(() => call(both.other, key, "by-credential"), WITHIN)
      .toEqual([200, "Bearer second-secret"]);
    expect(await other("GET", "/credentials")).toEqual({
      success: true,
      credentials: [
        {
          credential_name: "azure-or-so",
          display_name: null,
          credential_info: { custom_llm_provider: "openai" },
          credential_values: { api_key: "*****", api_base: "*****" },
          source: "db",
        },
      ],
    });
    // In use, also where another instance knows of the model.
    const denied = await both.other.request(
      "DELETE",
      "/credentials/azure-or-so",
    );
    expect([denied.status, denied.text]).toEqual([
      400,
      expect.stringContaining("in use by 1 model (by-credential)"),
    ]);
    await one("POST", "/model/delete", { id: model["model_id"] });
    expect(await other("DELETE", "/credentials/azure-or-so")).toEqual({
      success: true,
      message: "Credential deleted successfully",
    });
    await one("GET", "/credentials/by_name/azure-or-so", undefined, 404);
  });

  test("an access group of models is changed on one instance and in force on both", async () => {
    const params = { api_key: "k", api_base: both.provider.url };
    await newModel("gpt-a", params);
    await newModel("gpt-b", params);
    expect(
      await one("POST", "/access_group/new", {
        access_group: "beta-models",
        model_names: ["gpt-a"],
      }),
    ).toMatchObject({
      access_group: "beta-models",
      model_names: ["gpt-a"],
      models_updated: 1,
    });
    const key = await both.one.createKey({ models: ["beta-models"] });
    await expect.poll(() => models(both.other, key), WITHIN).toEqual(["gpt-a"]);
    await other("PUT", "/access_group/beta-models/update", {
      model_names: ["gpt-a", "gpt-b"],
    });
    await expect
      .poll(() => models(both.one, key), WITHIN)
      .toEqual(["gpt-a", "gpt-b"]);
    expect(await one("GET", "/access_group/list")).toMatchObject({
      access_groups: [
        {
          access_group: "beta-models",
          model_names: ["gpt-a", "gpt-b"],
          deployment_count: 2,
        },
      ],
    });
    await one("DELETE", "/access_group/beta-models/delete");
    await expect.poll(() => models(both.other, key), WITHIN).toEqual([]);
  });

  test("a unified access group grants models to teams and keys on both instances", async () => {
    const team = await one("POST", "/team/new", {
      models: ["no-default-models"],
    });
    const teamId = String(team["team_id"]);
    const ofTeam = await both.one.createKey({ team_id: teamId });
    const personal = await both.one.createKey({
      models: ["no-default-models"],
    });
    for (const key of [ofTeam, personal]) {
      expect(await models(both.other, key)).toEqual([]);
    }
    const group = await one(
      "POST",
      "/v1/access_group",
      {
        access_group_name: "assistants",
        access_model_names: ["mock"],
        assigned_team_ids: [teamId],
        assigned_key_ids: [hashKey(personal)],
      },
      201,
    );
    expect(group).toMatchObject({
      access_group_name: "assistants",
      assigned_team_ids: [teamId],
      assigned_key_ids: [hashKey(personal)],
      access_mcp_server_ids: [],
    });
    for (const key of [ofTeam, personal]) {
      await expect
        .poll(() => models(both.other, key), WITHIN)
        .toEqual(["mock"]);
      expect((await call(both.other, key, "mock"))[0]).toBe(200);
    }
    const path = `/v1/access_group/${String(group["access_group_id"])}`;
    await other("PUT", path, { assigned_key_ids: [] });
    await expect.poll(() => models(both.one, personal), WITHIN).toEqual([]);
    expect(await models(both.one, ofTeam)).toEqual(["mock"]);
    await one("DELETE", path, undefined, 204);
    await expect.poll(() => models(both.other, ofTeam), WITHIN).toEqual([]);
  });

  test("a model is patched on one instance and called by its new parameters on both", async () => {
    const model = await newModel("patched", {
      api_key: "old-key",
      api_base: both.provider.url,
    });
    const id = String(model["model_id"]);
    const key = await both.one.createKey({});
    await one("PATCH", `/model/${id}/update`, {
      litellm_params: { api_key: "new-key" },
    });
    for (const gateway of [both.one, both.other]) {
      await expect
        .poll(() => call(gateway, key, "patched"), WITHIN)
        .toEqual([200, "Bearer new-key"]);
    }
    const listed = await other("GET", `/v2/model/info?modelId=${id}`);
    expect(listed).toMatchObject({
      total_count: 1,
      current_page: 1,
      total_pages: 1,
      size: 50,
      data: [{ model_name: "patched", model_info: { id, db_model: true } }],
    });
    expect(JSON.stringify(listed)).not.toContain("new-key");
  });

  test("members are added and keys changed in bulk, on every instance", async () => {
    const team = await one("POST", "/team/new", {});
    const team_id = String(team["team_id"]);
    expect(
      await one("POST", "/team/bulk_member_add", {
        team_id,
        members: [
          { user_id: "user1", role: "user" },
          { user_email: "user2@example.com", role: "admin" },
        ],
        max_budget_in_team: 100,
      }),
    ).toMatchObject({
      team_id,
      total_requested: 2,
      successful_additions: 2,
      failed_additions: 0,
      results: [
        { user_id: "user1", success: true },
        { user_email: "user2@example.com", success: true },
      ],
    });
    expect(await other("GET", "/v2/user/info?user_id=user1")).toMatchObject({
      user_id: "user1",
      teams: [team_id],
    });
    const key = await both.one.createKey({ team_id, user_id: "user1" });
    expect((await call(both.other, key, "mock"))[0]).toBe(200);
    expect(
      await one("POST", "/team/key/bulk_update", {
        team_id,
        all_keys_in_team: true,
        update_fields: { max_budget: 0 },
      }),
    ).toMatchObject({
      total_requested: 1,
      successful_updates: [{ key: hashKey(key), key_info: { max_budget: 0 } }],
      failed_updates: [],
    });
    for (const gateway of [both.one, both.other]) {
      await expect
        .poll(async () => (await call(gateway, key, "mock"))[0], WITHIN)
        .toBe(400);
    }
  });

  test("a member's spend is reset on one instance, and its budget admits calls on both", async () => {
    const team = await one("POST", "/team/new", {});
    const team_id = String(team["team_id"]);
    await one("POST", "/team/member_add", {
      team_id,
      member: { user_id: "spender", role: "user" },
      max_budget_in_team: 0.00001,
    });
    const key = await both.one.createKey({ team_id, user_id: "spender" });
    const statuses = async () => {
      const first = await call(both.one, key, "mock");
      const second = await call(both.other, key, "mock");
      return [first[0], second[0]];
    };
    await expect.poll(statuses, { timeout: 5_000 }).toEqual([400, 400]);
    const reset = await one(
      "POST",
      `/team/${team_id}/member/spender/reset_spend`,
      { reset_to: 0 },
    );
    expect(reset).toMatchObject({
      team_id,
      user_id: "spender",
      spend: 0,
      max_budget: 0.00001,
    });
    expect(Number(reset["previous_spend"])).toBeGreaterThanOrEqual(0.00001);
    await expect
      .poll(async () => (await call(both.other, key, "mock"))[0], WITHIN)
      .toBe(200);
  });
});
