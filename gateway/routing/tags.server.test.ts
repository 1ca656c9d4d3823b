import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startTestbed,
  type TestAnswer,
  type Testbed,
} from "../../test/servers/gateway.ts";

/** `free` and `paid` as in LiteLLM's documentation, `both` with two tags; `tiers` has a default, `strict` has none. */
function yaml(router: string) {
  return (providerUrl: string) => {
    const deployment = (alias: string, id: string, tags: string, more = "") =>
      `  - model_name: ${alias}\n    litellm_params: { model: openai/${id}, api_base: "${providerUrl}", api_key: x, tags: [${tags}]${more} }\n    model_info: { id: ${alias}-${id} }\n`;
    return `model_list:
${deployment("tiers", "free", '"free"')}${deployment("tiers", "paid", '"paid"')}${deployment("tiers", "both", '"free", "gold"')}${deployment("tiers", "rest", '"default"')}
${deployment("strict", "free", '"free"')}${deployment("strict", "paid", '"paid"')}
${deployment("plain", "one", "")}${deployment("plain", "two", "")}
${deployment("agents", "code", "", ', tag_regex: ["^User-Agent: claude-code/", "cursor"]')}${deployment("agents", "rest", '"default"')}
${deployment("code-only", "code", '"code"', ', tag_regex: ["^User-Agent: claude-code/"]')}${deployment("code-only", "paid", '"paid"')}
${deployment("waits", "free", '"free"')}${deployment("waits", "paid", '"paid"', ", organization: os.environ/HEARTH_TEST_UNSET")}
${deployment("broken", "any", "").replace(providerUrl, "http://127.0.0.1:9")}
proxy_settings: { cache: true, cache_params: { type: memory } }
router_settings:
  num_retries: 0
  fallbacks: [{ broken: [strict, tiers] }]
${router}`;
  };
}

let testbed: Testbed;
let key: string;

function useTestbed(router: string): void {
  beforeAll(async () => {
    testbed = await startTestbed(yaml(router));
    key = await testbed.gateway.createKey();
  });
  afterAll(() => testbed?.stop());
}

let calls = 0;

function call(
  model: string,
  fields: object = {},
  headers: Record<string, string> = {},
  by = key,
): Promise<TestAnswer> {
  const messages = [{ role: "user", content: `call ${calls++}` }];
  const body = { model, messages, ...fields };
  const path = "/v1/chat/completions";
  return testbed.gateway.request("POST", path, body, by, headers);
}

const idOf = ({ headers }: TestAnswer) => headers.get("x-hearth-model-id");

/** The deployments that answer a number of such calls. */
async function reached(
  model: string,
  fields: object = {},
  headers: Record<string, string> = {},
  by = key,
): Promise<readonly (string | null)[]> {
  const ids = new Set<string | null>();
  for (let i = 0; i < 32; i++) {
    const answer = await call(model, fields, headers, by);
    ids.add(answer.status === 200 ? idOf(answer) : String(answer.status));
  }
  return [...ids].toSorted();
}

describe("with enable_tag_filtering", () => {
  useTestbed("  enable_tag_filtering: true\n");

  test.each<[string, object, Record<string, string>]>([
    ["the body's tags", { tags: ["paid"] }, {}],
    ["metadata.tags", { metadata: { tags: ["paid"] } }, {}],
    ["litellm_metadata.tags", { litellm_metadata: { tags: ["paid"] } }, {}],
    ["x-litellm-tags", {}, { "x-litellm-tags": "paid, other" }],
    ["x-hearth-tags", {}, { "x-hearth-tags": "paid" }],
  ])(
    "%s select the deployments that have one of them",
    async (_, fields, headers) => {
      expect(await reached("tiers", fields, headers)).toEqual(["tiers-paid"]);
      expect(await reached("strict", fields, headers)).toEqual(["strict-paid"]);
    },
  );

  test.each([
    ["tags of the key", { tags: ["paid"] }],
    ["tags in the key's metadata", { metadata: { tags: ["paid"] } }],
  ])("%s select too", async (_, fields) => {
    const by = await testbed.gateway.createKey(fields);
    expect(await reached("strict", {}, {}, by)).toEqual(["strict-paid"]);
  });

  test.each([
    ["tags of the team", { tags: ["paid"] }],
    ["tags in the team's metadata", { metadata: { tags: ["paid"] } }],
  ])("%s select too", async (team_alias, fields) => {
    const team = await testbed.gateway.request("POST", "/team/new", {
      team_alias,
      ...fields,
    });
    const by = await testbed.gateway.createKey({
      team_id: team.json["team_id"],
    });
    expect(await reached("strict", {}, {}, by)).toEqual(["strict-paid"]);
  });

  test("tag_regex selects by the client, before the default", async () => {
    const from = (agent: string) =>
      reached("agents", {}, { "user-agent": agent });
    expect(await from("claude-code/1.0 (external)")).toEqual(["agents-code"]);
    expect(await from("my cursor 2")).toEqual(["agents-code"]);
    expect(await from("not claude-code/1.0")).toEqual(["agents-rest"]);
    expect(
      await reached(
        "code-only",
        { tags: ["paid"] },
        { "user-agent": "claude-code/1.0" },
      ),
    ).toEqual(["code-only-code", "code-only-paid"]);
  });

  test("a client that no deployment is for is rejected before a provider is called", async () => {
    const before = testbed.provider.requests.length;
    const agent = { "user-agent": "curl/8" };
    const answer = await call("code-only", {}, agent);
    expect(answer.status).toBe(400);
    expect(answer.json["error"]).toMatchObject({ param: "tags" });
    expect(answer.json["error"]?.["message"]).toContain("`tag_regex`");
    expect(answer.json["error"]?.["message"]).toContain("code, paid");
    expect(testbed.provider.requests).toHaveLength(before);
    const tagged = await call("code-only", { tags: ["paid"] }, agent);
    expect(idOf(tagged)).toBe("code-only-paid");
  });

  test("several deployments with a tag share its calls", async () => {
    expect(await reached("tiers", { tags: ["free"] })).toEqual([
      "tiers-both",
      "tiers-free",
    ]);
    expect(await reached("strict", { tags: ["free", "paid"] })).toEqual([
      "strict-free",
      "strict-paid",
    ]);
  });

  test("calls without tags, or with others, go to the default, else without tags to all", async () => {
    expect(await reached("tiers")).toEqual(["tiers-rest"]);
    expect(await reached("tiers", { tags: ["spend"] })).toEqual(["tiers-rest"]);
    expect(await reached("strict")).toEqual(["strict-free", "strict-paid"]);
    expect(await reached("plain", { tags: ["spend"] })).toEqual([
      "plain-one",
      "plain-two",
    ]);
  });

  test("a tag that no deployment has is rejected with the existing tags, before a provider is called", async () => {
    const before = testbed.provider.requests.length;
    const answer = await call("strict", { tags: ["gold"] });
    expect(answer.status).toBe(400);
    expect(answer.json["error"]).toMatchObject({
      type: "invalid_request_error",
      param: "tags",
    });
    expect(answer.json["error"]?.["message"]).toContain(
      "Existing tags: free, paid.",
    );
    expect(testbed.provider.requests).toHaveLength(before);
  });

  test("embeddings, messages and responses are routed in the same way", async () => {
    for (const [path, body] of [
      ["/v1/embeddings", { model: "strict", input: "text" }],
      [
        "/v1/messages",
        {
          model: "strict",
          max_tokens: 5,
          messages: [{ role: "user", content: "hi" }],
        },
      ],
      ["/v1/responses", { model: "strict", input: "text" }],
    ] as const) {
      const ask = (tag: string) =>
        testbed.gateway.request("POST", path, body, key, {
          "x-litellm-tags": tag,
        });
      expect([path, idOf(await ask("paid"))]).toEqual([path, "strict-paid"]);
      expect([path, (await ask("gold")).status]).toEqual([path, 400]);
    }
  });

  test("a tag whose deployments wait for a variable leads to no other deployment", async () => {
    const pending = await call("waits", { tags: ["paid"] });
    expect(pending.json["error"]?.["type"]).toBe("model_pending");
    expect(await reached("waits", { tags: ["free"] })).toEqual(["waits-free"]);
  });

  test("the answers of one tag are not the cached answers of another", async () => {
    const same = { messages: [{ role: "user", content: "the same" }] };
    const first = await call("strict", { ...same, tags: ["free"] });
    const other = await call("strict", { ...same, tags: ["paid"] });
    expect([idOf(first), idOf(other)]).toEqual(["strict-free", "strict-paid"]);
    expect(other.headers.get("x-hearth-cache")).toBe("miss");
    const again = await call("strict", { ...same, tags: ["free"] });
    expect(again.headers.get("x-hearth-cache")).toBe("hit");
  });

  test("fallbacks are chosen by the tags, and passed over where no deployment has one", async () => {
    expect(await reached("broken", { tags: ["paid"] })).toEqual([
      "strict-paid",
    ]);
    expect(await reached("broken", { tags: ["gold"] })).toEqual(["tiers-both"]);
  });
});

describe("with tag_filtering_match_any: false", () => {
  useTestbed(
    "  enable_tag_filtering: true\n  tag_filtering_match_any: false\n",
  );

  test("a deployment needs all tags of the call", async () => {
    expect(await reached("tiers", { tags: ["free", "gold"] })).toEqual([
      "tiers-both",
    ]);
    expect(await reached("tiers", { tags: ["free", "paid"] })).toEqual([
      "tiers-rest",
    ]);
    expect((await call("strict", { tags: ["free", "paid"] })).status).toBe(400);
  });
});

describe("without the setting", () => {
  useTestbed("");

  test("tags select, and a call that matches no deployment goes to all", async () => {
    expect(await reached("strict", { tags: ["paid"] })).toEqual([
      "strict-paid",
    ]);
    expect(await reached("tiers")).toEqual(["tiers-rest"]);
    expect(await reached("strict", { tags: ["spend"] })).toEqual([
      "strict-free",
      "strict-paid",
    ]);
  });
});

describe("with enable_tag_filtering: false", () => {
  useTestbed("  enable_tag_filtering: false\n");

  test("tags do not affect the choice", async () => {
    expect(await reached("strict", { tags: ["paid"] })).toEqual([
      "strict-free",
      "strict-paid",
    ]);
  });
});
