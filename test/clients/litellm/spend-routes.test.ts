import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Json } from "../../servers/gateway.ts";
import { hasRedisServer } from "../../servers/redis.ts";
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

// Spend, utility and health routes: https://docs.litellm.ai/docs/proxy/cost_tracking,
// https://docs.litellm.ai/docs/proxy/health, https://docs.litellm.ai/docs/count_tokens
const yaml = (url: string) => `model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_base: "${url}", api_key: fake-key }
  - model_name: for-agents
    litellm_params: { model: openai/fake, api_base: "${url}", api_key: fake-key, tag_regex: ["^User-Agent: claude-code/"] }
    model_info: { id: agents }
  - model_name: for-agents
    litellm_params: { model: openai/fake, api_base: "${url}", api_key: fake-key, tags: [default] }
    model_info: { id: others }
router_settings:
  enable_tag_filtering: true
litellm_settings:
  litellm_headers: true
`;

const TODAY = new Date().toISOString().slice(0, 10);

describe.runIf(hasRedisServer())("spend and utility routes of LiteLLM", () => {
  let both: TwoInstances;
  let key: string;

  beforeAll(async () => {
    both = await startTwoInstances(yaml);
    await both.one.request("POST", "/team/new", {
      team_id: "crew",
      team_alias: "The Crew",
    });
    key = await both.one.createKey({
      user_id: "alice",
      team_id: "crew",
      key_alias: "alice-key",
    });
    for (const gateway of [both.one, both.other]) {
      for (const prompt of ["first", "second"]) {
        const { status } = await gateway.chat(key, `${gateway.url} ${prompt}`, {
          model: "gpt-4o",
          user: "customer-1",
          metadata: { tags: ["nightly"] },
        });
        expect(status).toBe(200);
      }
      await gateway.running.gateway.ledger.flush();
    }
  });
  afterAll(() => both?.stop());

  const get = async (path: string, as?: string): Promise<Json> => {
    const { status, json, text } = await both.other.request(
      "GET",
      path,
      undefined,
      as,
    );
    expect([path, status, text]).toEqual([path, 200, text]);
    return json;
  };

  test.each(["/spend/logs/v2", "/spend/logs/ui"])(
    "%s pages through the calls of both instances",
    async (path) => {
      const range = `start_date=${TODAY} 00:00:00&end_date=${TODAY} 23:59:59`;
      const page = await get(
        `${path}?${range}&page=1&page_size=3&api_key=${key}`,
      );
      expect(page).toMatchObject({
        total: 4,
        page: 1,
        page_size: 3,
        total_pages: 2,
        total_is_capped: false,
      });
      const rows = page["data"] as unknown as readonly Json[];
      expect(rows).toHaveLength(3);
      expect(rows[0]).toMatchObject({
        call_type: "acompletion",
        model: "gpt-4o",
        model_group: "gpt-4o",
        custom_llm_provider: "openai",
        user: "alice",
        team_id: "crew",
        end_user: "customer-1",
        request_tags: ["nightly"],
        cache_hit: "False",
        status: "success",
        metadata: { user_api_key_alias: "alice-key" },
      });
      expect(rows[0]?.["request_duration_ms"]).toBeGreaterThanOrEqual(0);
      const rest = await get(
        `${path}?${range}&page_size=3&cursor=${String(page["next_cursor"])}`,
      );
      expect(rest["data"]).toHaveLength(1);
      const own = await get(`${path}?${range}`, key);
      expect(own).toMatchObject({ total: 4 });
    },
  );

  test("a range of time is required, and errors name the parameter", async () => {
    for (const [params, param] of [
      ["", "start_date"],
      [`?start_date=${TODAY}`, "end_date"],
      [`?start_date=${TODAY}&end_date=${TODAY}&sort_by=user`, "sort_by"],
    ] as const) {
      const { status, json } = await both.one.request(
        "GET",
        `/spend/logs/v2${params}`,
      );
      expect([status, json["error"]?.["param"]]).toEqual([400, param]);
    }
  });

  test.each([
    ["user", "", "alice"],
    ["team", "team_ids=crew&", "crew"],
    ["tag", "tags=nightly&", "nightly"],
    ["customer", "end_user_ids=customer-1&", "customer-1"],
    ["end_user", "end_user_ids=customer-1&", "customer-1"],
  ])(
    "/%s/daily/activity/aggregated adds both instances up",
    async (of, ids, id) => {
      const { results, metadata } = await get(
        `/${of}/daily/activity/aggregated?${ids}start_date=${TODAY}&end_date=${TODAY}`,
      );
      expect(metadata).toMatchObject({
        total_api_requests: 4,
        total_successful_requests: 4,
        total_failed_requests: 0,
        page: 1,
        total_pages: 1,
        has_more: false,
      });
      expect(metadata?.["total_spend"]).toBeGreaterThan(0);
      const day = results?.[0];
      expect(day?.["date"]).toBe(TODAY);
      expect(day?.["breakdown"]).toMatchObject({
        models: { "gpt-4o": { metrics: { api_requests: 4 } } },
        model_groups: { "gpt-4o": { metrics: { api_requests: 4 } } },
        providers: { openai: { metrics: { api_requests: 4 } } },
        entities: { [id]: { metrics: { api_requests: 4 } } },
        mcp_servers: {},
      });
    },
  );

  test("tokens are counted and parameters listed for any key", async () => {
    const { json } = await both.one.request(
      "POST",
      "/utils/token_counter",
      { model: "gpt-4o", messages: [{ role: "user", content: "Hello" }] },
      key,
    );
    expect(json).toMatchObject({
      request_model: "gpt-4o",
      model_used: "gpt-4o",
      tokenizer_type: "openai_tokenizer",
    });
    expect(json["total_tokens"]).toBeGreaterThan(0);
    const params = await get(
      "/utils/supported_openai_params?model=gpt-4o",
      key,
    );
    expect(params["supported_openai_params"]).toEqual(
      expect.arrayContaining(["temperature", "tools", "response_format"]),
    );
  });

  test("a connection is tested by an admin only", async () => {
    const body = { litellm_params: { model: "gpt-4o" }, mode: "chat" };
    const path = "/health/test_connection";
    const { json } = await both.one.request("POST", path, body);
    expect(json).toMatchObject({
      status: "success",
      result: { model: "openai/gpt-4o" },
    });
    expect((await both.one.request("POST", path, body, key)).status).toBe(403);
  });

  test("tag_regex routes a client by its User-Agent, on both instances", async () => {
    for (const gateway of [both.one, both.other]) {
      for (const [agent, id] of [
        ["claude-code/2.0", "agents"],
        ["curl/8", "others"],
      ] as const) {
        const { headers } = await gateway.request(
          "POST",
          "/v1/chat/completions",
          {
            model: "for-agents",
            messages: [{ role: "user", content: `${agent} ${gateway.url}` }],
          },
          key,
          { "user-agent": agent },
        );
        expect(headers.get("x-litellm-model-id")).toBe(id);
      }
    }
  });

  test("fastest_response answers once; each model has its row", async () => {
    const fields = { model: "gpt-4o,for-agents", fastest_response: true };
    const caller = await both.one.createKey({ key_alias: "racer" });
    const { status, json } = await both.one.chat(caller, "race", fields);
    expect(status).toBe(200);
    expect(json).toMatchObject({ object: "chat.completion" });
    await vi.waitFor(async () => {
      await both.one.running.gateway.ledger.flush();
      const page = await get(
        `/spend/logs/v2?start_date=${TODAY}&end_date=${TODAY}&key_alias=racer`,
      );
      expect(page["total"]).toBe(2);
    });
  });
});
