import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRedisServer } from "../../servers/redis.ts";
import { caught } from "../testbed.ts";
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

/** LiteLLM's documentation: "Tag Based Routing", and "Custom Pricing" for models behind a proxy. */
function yaml(url: string): string {
  const deployment = (alias: string, model: string, tag: string) => `
  - model_name: ${alias}
    litellm_params: { model: ${model}, api_base: "${url}", api_key: fake-key, tags: [${tag}] }
    model_info: { id: ${alias}-${tag} }`;
  return `model_list:${deployment("gpt-4", "openai/fake", "free")}${deployment("gpt-4", "openai/gpt-4o", "paid")}${deployment("gpt-4", "openai/other", "default")}${deployment("by-team", "openai/fake", "teamA")}${deployment("by-team", "openai/fake", "teamB")}
router_settings:
  enable_tag_filtering: True
litellm_settings:
  litellm_headers: true
`;
}

describe.runIf(hasRedisServer())("tag routing of LiteLLM's dialect", () => {
  let both: TwoInstances;

  beforeAll(async () => {
    both = await startTwoInstances(yaml);
  });
  afterAll(() => both?.stop());

  async function answeredBy(
    model: string,
    apiKey: string,
    body: object = {},
    headers: Record<string, string> = {},
  ): Promise<readonly string[]> {
    const ids = new Set<string>();
    for (const { url } of [both.one, both.other, both.one, both.other]) {
      const client = new OpenAI({
        apiKey,
        baseURL: `${url}/v1`,
        maxRetries: 0,
        defaultHeaders: headers,
      });
      const { response } = await client.chat.completions
        .create({
          model,
          messages: [{ role: "user", content: `${ids.size} ${url}` }],
          ...body,
        })
        .withResponse();
      ids.add(response.headers.get("x-litellm-model-id") ?? "");
    }
    return [...ids];
  }

  test("a request's tags, in the body, in metadata or in the header, choose the deployment", async () => {
    const key = await both.one.createKey();
    for (const [body, headers] of [
      [{ tags: ["free"] }, {}],
      [{ metadata: { tags: ["free"] } }, {}],
      [{}, { "x-litellm-tags": "free,my-custom-tag" }],
    ] as const) {
      expect(await answeredBy("gpt-4", key, body, headers)).toEqual([
        "gpt-4-free",
      ]);
    }
    expect(await answeredBy("gpt-4", key, { tags: ["paid"] })).toEqual([
      "gpt-4-paid",
    ]);
  });

  test("untagged requests go to the deployments tagged default", async () => {
    const key = await both.one.createKey();
    expect(await answeredBy("gpt-4", key)).toEqual(["gpt-4-default"]);
  });

  test("the tags of a team choose for all its keys", async () => {
    for (const tag of ["teamA", "teamB"]) {
      const team = await both.one.request("POST", "/team/new", { tags: [tag] });
      const key = await both.one.createKey({ team_id: team.json["team_id"] });
      expect(await answeredBy("by-team", key)).toEqual([`by-team-${tag}`]);
    }
  });

  test("tags that no deployment has are rejected with those that exist", async () => {
    const key = await both.one.createKey({ tags: ["teamC"] });
    const error = await caught(answeredBy("by-team", key));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect((error as Error).message).toContain("teamA, teamB");
  });

  test("a model behind a proxy at a private address costs what its name costs", async () => {
    const key = await both.one.createKey();
    const { headers } = await both.one.chat(key, "priced", {
      model: "gpt-4",
      tags: ["paid"],
    });
    expect(Number(headers.get("x-litellm-response-cost"))).toBeGreaterThan(0);
    const free = await both.one.chat(key, "free", {
      model: "gpt-4",
      tags: ["free"],
    });
    expect(Number(free.headers.get("x-litellm-response-cost"))).toBe(0);
  });
});
