import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  INPUT_PRICE,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

const ALIASES = ["ollama", "nginx", "vllm", "studio", "declared", "other"];

let testbed: Testbed;
let key: string;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) =>
      `model_list:\n${ALIASES.map(
        (alias) => `  - model_name: ${alias}
    provider_params: { model: openai/m-${alias}, api_base: "${url}", api_key: x, input_cost_per_token: ${INPUT_PRICE}, output_cost_per_token: ${OUTPUT_PRICE} }
${alias === "declared" ? "    model_info: { supports_responses: true }\n" : ""}`,
      ).join("")}router_settings: { num_retries: 0 }\n`,
  );
  key = await testbed.gateway.createKey();
});

afterAll(() => testbed?.stop());

/** A prompt to which the server answers as one that has no /responses. */
function withoutRoute(status: number, text: string): string {
  return `[mock]${JSON.stringify({ unknownPath: { path: "/v1/responses", status, text } })}`;
}

const GIN = withoutRoute(404, "404 page not found");

function client(): OpenAI {
  return new OpenAI({
    apiKey: key,
    baseURL: `${testbed.gateway.url}/v1`,
    maxRetries: 0,
  });
}

/** Where the calls of an alias went, oldest first. */
function pathsOf(alias: string): readonly string[] {
  return testbed.provider.requests
    .filter(({ body }) => body["model"] === `m-${alias}`)
    .map(({ path }) => path.replace("/v1", ""));
}

test("a server without /responses is asked by chat, and by chat alone afterwards; each call is billed once", async () => {
  const call = { model: "ollama", input: GIN };
  const answer = await client().responses.create(call);
  expect(answer.output_text).toBe("four words in here");
  expect((await client().responses.create(call)).output_text).toBe(
    "four words in here",
  );
  expect(pathsOf("ollama")).toEqual([
    "/responses",
    "/chat/completions",
    "/chat/completions",
  ]);
  const { gateway } = testbed.gateway.running;
  await gateway.ledger.flush();
  const rows = await query<{ status: string; spend: number }>(
    gateway.pool,
    "SELECT status, spend::float8 AS spend FROM spend_log WHERE model_group = 'ollama'",
  );
  expect(rows.map(({ status }) => status)).toEqual(["success", "success"]);
  for (const { spend } of rows) {
    expect(spend).toBeCloseTo(10 * INPUT_PRICE + 4 * OUTPUT_PRICE, 12);
  }
});

test("streams fall back as well, before their first event", async () => {
  const input = withoutRoute(405, "<h1>405 Not Allowed</h1>");
  const answer = await client()
    .responses.stream({ model: "nginx", input })
    .finalResponse();
  expect(answer.output_text).toBe("word0 word1 word2 word3 ");
  expect(pathsOf("nginx")).toEqual(["/responses", "/chat/completions"]);
});

test.each([
  ["vllm", withoutRoute(404, '{"detail":"Not Found"}')],
  [
    "studio",
    withoutRoute(
      200,
      '{"error":"Unexpected endpoint or method. (POST /v1/responses)"}',
    ),
  ],
])(
  "the answer of %s to an unknown route is recognized",
  async (model, input) => {
    const answer = await client().responses.create({ model, input });
    expect(answer.output_text).toBe("four words in here");
  },
);

test.each([
  ["declared", GIN],
  [
    "other",
    withoutRoute(404, '{"error":{"message":"The model `m` does not exist."}}'),
  ],
  ["other", withoutRoute(500, "broken")],
])(
  "%s is not asked by chat after an error of another kind",
  async (model, input) => {
    await expect(
      client().responses.create({ model, input }),
    ).rejects.toMatchObject({ status: expect.any(Number) });
    expect(pathsOf(model)).not.toContain("/chat/completions");
  },
);

test("a call that chat cannot express names both reasons", async () => {
  await expect(
    client().responses.create({
      model: "other",
      input: GIN,
      tools: [{ type: "web_search" }],
    }),
  ).rejects.toThrow(/has no \/responses.*`tools\[0\] \(web_search\)`/);
});
