import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  OUTPUT_PRICE,
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import {
  startScriptedProvider,
  STARTED_INPUT_TOKENS,
  type Fault,
  type ScriptedProvider,
} from "./scripted-provider-fixture.ts";

/** The first deployment of an alias is the cheaper one, and is tried first. */
const FAMILIES = ["openai", "anthropic", "gemini", "ollama"] as const;
const FAULTS: readonly Fault[] = ["error", "reset", "end", "half"];

interface ClientDialect {
  readonly name: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The type of the event that ends a failed stream; null: its data has `error`. */
  readonly errorTypes: readonly string[] | null;
}

const PROMPT = [{ role: "user", content: "hello" }];
const DIALECTS: readonly ClientDialect[] = [
  {
    name: "chat",
    path: "/v1/chat/completions",
    body: { messages: PROMPT },
    errorTypes: null,
  },
  {
    name: "completions",
    path: "/v1/completions",
    body: { prompt: "hello" },
    errorTypes: null,
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: { input: "hello" },
    errorTypes: ["response.failed", "error"],
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: { messages: PROMPT, max_tokens: 50 },
    errorTypes: ["error"],
  },
];

const CASES = DIALECTS.flatMap((dialect) =>
  FAMILIES.flatMap((family) =>
    FAULTS.map((fault) => [dialect.name, family, fault, dialect] as const),
  ),
);

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: ScriptedProvider;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startScriptedProvider();
  const deployment = (family: string, url: string, price: number) =>
    `  - { model_name: ${family}, provider_params: { model: ${family}/m, api_base: "${url}${family === "anthropic" ? "" : "/v1"}", api_key: x, input_cost_per_token: ${price * INPUT_PRICE}, output_cost_per_token: ${price * OUTPUT_PRICE} } }\n`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.second,
    yaml: `model_list:
${FAMILIES.map((family) => deployment(family, provider.first, 1) + deployment(family, provider.second, 2)).join("")}
router_settings: { routing_strategy: cost-based-routing, num_retries: 1, allowed_fails: 1000, runner_probe_interval: never }
`,
  });
  key = await gateway.createKey({ max_budget: 100 });
});

beforeEach(() => {
  provider.called.length = 0;
});

afterAll(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
});

function stream(
  { path, body }: ClientDialect,
  model: string,
): Promise<TestAnswer> {
  return gateway.request("POST", path, { ...body, model, stream: true }, key);
}

async function rowsOf(answer: TestAnswer) {
  await gateway.running.gateway.ledger.flush();
  return query<Record<string, unknown>>(
    gateway.running.gateway.pool,
    "SELECT status, spend::float8 AS spend, prompt_tokens::int AS prompt_tokens, metadata FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
}

/** The data of all events of a stream. */
function eventsIn({ text }: TestAnswer): readonly Record<string, unknown>[] {
  return text
    .split("\n\n")
    .flatMap((event) => /^data: (\{.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => JSON.parse(data) as Record<string, unknown>);
}

test.each(CASES)(
  "%s from %s: a stream that fails before its first content (%s) is answered by the next deployment",
  async (_name, family, fault, dialect) => {
    provider.script = { sent: "opening", fault };
    const answer = await stream(dialect, family);
    expect(answer.text).toContain("second ");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-hearth-attempted-retries")).toBe("1");
    expect(provider.called.map((path) => path.split("/")[1])).toEqual([
      "first",
      "second",
    ]);
    const failed = eventsIn(answer).filter(
      ({ type, error }) => error != null || type === "response.failed",
    );
    expect(failed).toEqual([]);
    const rows = await rowsOf(answer);
    expect(rows).toMatchObject([
      { status: "success", metadata: { attempts: [{}] } },
    ]);
    // The second deployment costs twice as much as the first, whose input may be charged unless it reported an error.
    const answered = 2 * (7 * INPUT_PRICE + 2 * OUTPUT_PRICE);
    const spend = Number(rows[0]?.["spend"]);
    if (provider.called[0]?.endsWith("/messages") === true) {
      const owed = STARTED_INPUT_TOKENS * INPUT_PRICE;
      expect(spend).toBeCloseTo(answered + owed, 12);
    } else if (fault === "error") {
      expect(spend).toBeCloseTo(answered, 12);
    } else {
      expect(spend).toBeGreaterThan(answered);
    }
  },
);

test.each(CASES)(
  "%s from %s: a stream that fails after content (%s) ends with an error event, and what was used is recorded",
  async (_name, family, fault, dialect) => {
    provider.script = { sent: "content", fault };
    const answer = await stream(dialect, family);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("first ");
    expect(answer.text).not.toContain("second ");
    expect(provider.called).toHaveLength(1);
    if (fault === "reset") {
      expect(answer.text).toContain("the provider broke off its answer");
    }
    const events = eventsIn(answer);
    const last = events.at(-1) ?? {};
    if (dialect.errorTypes === null) {
      expect(last).toMatchObject({ error: { message: expect.any(String) } });
      expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
    } else {
      expect(dialect.errorTypes).toContain(last["type"]);
    }
    const starts = events.filter(({ type }) =>
      ["message_start", "response.created"].includes(String(type)),
    );
    expect(starts.length).toBeLessThan(2);
    const rows = await rowsOf(answer);
    expect(rows).toMatchObject([
      { status: "failure", metadata: { error_information: {} } },
    ]);
    expect(Number(rows[0]?.["spend"])).toBeGreaterThan(0);
  },
);
