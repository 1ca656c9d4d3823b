import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../gateway/access/keys.ts";
import {
  modelYaml,
  type Json,
  type TestGateway,
} from "../../servers/gateway.ts";
import { hasRedisServer } from "../../servers/redis.ts";
import { caught, collected } from "../testbed.ts";
import {
  startTwoInstances,
  WITHIN,
  type TwoInstances,
} from "./two-instances.ts";

/** LiteLLM's documentation: "Allow Teams to Add Models", "Role-based Access Controls", the reference of `/team` and `/key`. */
describe.runIf(hasRedisServer())("teams of LiteLLM's dialect", () => {
  let both: TwoInstances;
  let teamId: string;
  /** Of a team's admin, of the team, of a plain member and of none. */
  const keys = { admin: "", team: "", member: "", outside: "" };

  beforeAll(async () => {
    both = await startTwoInstances((url) => modelYaml(url));
    const team = await post("/team/new", {
      team_alias: "crew",
      members_with_roles: [
        { role: "admin", user_id: "admin@crew" },
        { role: "user", user_id: "member@crew" },
      ],
    });
    teamId = String(team["team_id"]);
    const of = (fields: object) => both.one.createKey({ ...fields });
    keys.admin = await of({ user_id: "admin@crew" });
    keys.team = await of({ team_id: teamId });
    keys.member = await of({ user_id: "member@crew" });
    keys.outside = await of({});
  });

  afterAll(() => both?.stop());

  async function post(path: string, body: object, key?: string): Promise<Json> {
    const answer = await both.one.request("POST", path, body, key);
    expect([path, answer.status, answer.text]).toEqual([
      path,
      200,
      answer.text,
    ]);
    return answer.json;
  }

  function newModel(name: string, team: string) {
    return {
      model_name: name,
      litellm_params: {
        model: "openai/gpt-4o",
        custom_llm_provider: "openai",
        api_key: "the-teams-own-key",
        api_base: both.provider.url,
      },
      model_info: { team_id: team },
    };
  }

  const clientOf = ({ url }: TestGateway, apiKey: string) =>
    new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });

  const ask = (gateway: TestGateway, key: string, model: string) =>
    clientOf(gateway, key).chat.completions.create({
      model,
      messages: [{ role: "user", content: `hello ${model}` }],
    });

  const listed = async (gateway: TestGateway, key: string) =>
    (await collected(clientOf(gateway, key).models.list())).map(({ id }) => id);

  test("a team's admin adds a model, which every instance serves to the team's keys only, until it is deleted", async () => {
    const name = "my-team-model";
    const { litellm_params: params, ...rest } = newModel(name, teamId);
    const outside = { ...params, api_base: "https://provider.example/v1" };
    const created = await post(
      "/model/new",
      { ...rest, litellm_params: outside },
      keys.admin,
    );
    // The provider's double is on this machine.
    await post("/model/update", {
      model_info: {
        id: created["model_info"]?.["id"],
        public_address_only: false,
      },
      litellm_params: params,
    });
    expect(created["model_info"]).toMatchObject({
      team_id: teamId,
      team_public_model_name: name,
    });
    await expect
      .poll(() => listed(both.other, keys.team), WITHIN)
      .toContain(name);
    for (const gateway of [both.one, both.other]) {
      const answer = await ask(gateway, keys.team, name);
      expect(answer.choices).toHaveLength(1);
      expect(both.provider.requests.at(-1)?.headers["authorization"]).toBe(
        "Bearer the-teams-own-key",
      );
      const denied = await caught(ask(gateway, keys.outside, name));
      expect(denied).toBeInstanceOf(OpenAI.BadRequestError);
      expect(await listed(gateway, keys.outside)).not.toContain(name);
    }
    const id = created["model_info"]?.["id"];
    await post("/model/delete", { id }, keys.admin);
    await expect
      .poll(() => listed(both.other, keys.team), WITHIN)
      .not.toContain(name);
  });

  test("a team's model is deleted with its team, on every instance", async () => {
    const team = await post("/team/new", {});
    const id = String(team["team_id"]);
    await post("/model/new", newModel("short-lived", id));
    const has = async (gateway: TestGateway) =>
      (await gateway.request("GET", "/model/info")).text.includes(
        '"short-lived"',
      );
    await expect.poll(() => has(both.other), WITHIN).toBe(true);
    await post("/team/delete", { team_ids: [id] });
    await expect.poll(() => has(both.other), WITHIN).toBe(false);
    expect(await has(both.one)).toBe(false);
  });

  test("members manage the team's keys as far as team_member_permissions say", async () => {
    const service = await both.one.createKey({ team_id: teamId });
    const update = () =>
      both.other.request(
        "POST",
        "/key/update",
        { key: service, models: ["mock"] },
        keys.member,
      );
    expect((await update()).status).toBe(403);
    await post(
      "/team/permissions_update",
      {
        team_id: teamId,
        team_member_permissions: ["/key/update", "/key/list", "/key/delete"],
      },
      keys.admin,
    );
    expect((await update()).status).toBe(200);
    const list = await both.other.request(
      "GET",
      `/key/list?team_id=${teamId}&size=100`,
      undefined,
      keys.member,
    );
    expect(list.json["keys"]).toContain(hashKey(service));
    await post("/key/delete", { keys: [service] }, keys.member);
    await expect
      .poll(
        async () =>
          (await both.other.request("GET", "/v1/models", undefined, service))
            .status,
        WITHIN,
      )
      .toBe(401);
  });

  test("a team's own key reads /team/info of its team and of no other", async () => {
    const info = (id: string) =>
      both.one.request("GET", `/team/info?team_id=${id}`, undefined, keys.team);
    const own = await info(teamId);
    expect(own.json).toMatchObject({
      team_id: teamId,
      team_info: { team_id: teamId, team_alias: "crew" },
    });
    const strange = await post("/team/new", {});
    expect((await info(String(strange["team_id"]))).status).toBe(403);
  });
});
