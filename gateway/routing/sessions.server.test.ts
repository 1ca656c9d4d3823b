import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import { listen } from "../../test/servers/ports.ts";

const SESSIONS = 8;
const TURNS = 50;
const WORDS_PER_MESSAGE = 100;
const INPUT_PRICE = 0.000001;
const CACHED_PRICE = INPUT_PRICE / 10;

interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** A provider that remembers prompts: a token a word; what a prompt has in common with an earlier one is cached. */
class RememberingProvider {
  readonly #server: Server;
  readonly #known = new Set<string>();
  /** Sessions that it was called for, by their first word. */
  readonly sessions = new Set<string>();
  isDown = false;

  constructor() {
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const { messages } = JSON.parse(Buffer.concat(parts).toString()) as {
          readonly messages: readonly Message[];
        };
        response.writeHead(this.isDown ? 503 : 200, {
          "content-type": "application/json",
        });
        response.end(JSON.stringify(this.isDown ? {} : this.#answer(messages)));
      });
    });
  }

  async start(): Promise<string> {
    const port = await listen(this.#server);
    return `http://127.0.0.1:${port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(messages: readonly Message[]): object {
    const prefixes = messages.map((_message, at) =>
      JSON.stringify(messages.slice(0, at + 1)),
    );
    const cached = prefixes.findLastIndex((text) => this.#known.has(text)) + 1;
    for (const prefix of prefixes) {
      this.#known.add(prefix);
    }
    this.sessions.add(messages[0]?.content.split(" ")[0] ?? "");
    return {
      id: "answer",
      object: "chat.completion",
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "yes" },
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: messages.length * WORDS_PER_MESSAGE,
        completion_tokens: 1,
        total_tokens: messages.length * WORDS_PER_MESSAGE + 1,
        prompt_tokens_details: { cached_tokens: cached * WORDS_PER_MESSAGE },
      },
    };
  }
}

const PROVIDERS = [new RememberingProvider(), new RememberingProvider()];
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const urls = await Promise.all(PROVIDERS.map((each) => each.start()));
  const [first = ""] = urls;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: first,
    yaml: `model_list:
${urls
  .map(
    (url) =>
      `  - model_name: agent\n    provider_params: { model: openai/m, api_base: "${url}", api_key: x, input_cost_per_token: ${INPUT_PRICE}, cache_read_input_token_cost: ${CACHED_PRICE}, output_cost_per_token: 0.000002 }\n`,
  )
  .join("")}router_settings:
  allowed_fails: 0
  cooldown_minimum_calls: 1
  cooldown_time: 2
proxy_settings: { cache: false }
`,
  });
});

afterAll(async () => {
  await gateway?.stop();
  PROVIDERS.forEach((each) => each.stop());
  await database?.drop();
});

const textOf = (session: string, turn: number) =>
  `${session} ${turn} ${"word ".repeat(WORDS_PER_MESSAGE - 2)}`.trim();

async function converse(
  key: string,
  session: string,
  turns: number,
): Promise<readonly string[]> {
  const messages: Message[] = [];
  const deployments: string[] = [];
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: "user", content: textOf(session, turn) });
    const { status, headers } = await gateway.request(
      "POST",
      "/v1/chat/completions",
      { model: "agent", messages },
      key,
    );
    expect(status).toBe(200);
    messages.push({ role: "assistant", content: textOf("yes", turn) });
    deployments.push(headers.get("x-hearth-model-id") ?? "");
  }
  return deployments;
}

interface Cached {
  /** Of the input. */
  readonly share: number;
  readonly tokens: number;
  readonly spend: number;
  readonly saved: number;
}

async function cachedOf(key: string): Promise<Cached | undefined> {
  const { pool, ledger } = gateway.running.gateway;
  await ledger.flush();
  const [row] = await query<Cached>(
    pool,
    `SELECT sum(cached_tokens)::float8 / sum(prompt_tokens) AS share, sum(cached_tokens)::float8 AS tokens,
         sum(l.spend)::float8 AS spend, sum(l.saved)::float8 AS saved
       FROM spend_log l JOIN keys k ON l.api_key = k.token WHERE k.key_name = 'sk-...' || right($1, 4)`,
    [key],
  );
  return row;
}

// First: afterwards, one deployment has used fewer tokens this minute.
test("a key can be excepted", async () => {
  const key = await gateway.createKey({
    metadata: { session_affinity: false },
  });
  const deployments = await converse(key, "excepted", 20);
  expect(new Set(deployments).size).toBe(2);
});

test("of 8 conversations at once of 50 turns, at least 95 % of the input is cached, and both deployments take some", async () => {
  const key = await gateway.createKey({});
  await Promise.all(
    Array.from({ length: SESSIONS }, (_none, at) =>
      converse(key, `session-${at}`, TURNS),
    ),
  );
  const {
    share = 0,
    tokens = 0,
    spend = 0,
    saved = 0,
  } = (await cachedOf(key)) ?? {};
  process.stdout.write(
    `${(share * 100).toFixed(1)} % of the input cached, $ ${spend.toFixed(4)} spent, $ ${saved.toFixed(4)} saved\n`,
  );
  expect(share).toBeGreaterThanOrEqual(0.95);
  expect(saved).toBeCloseTo(tokens * (INPUT_PRICE - CACHED_PRICE), 9);
  const { json } = await gateway.request("GET", "/me/usage", undefined, key);
  expect(json["by_day"]?.[0]?.["saved"]).toBeCloseTo(saved, 9);
  for (const { sessions } of PROVIDERS) {
    expect(sessions.size).toBeGreaterThan(0);
  }
});

test("while its deployment is down, a session goes to the other one, and then returns", async () => {
  const key = await gateway.createKey({});
  const [home] = await converse(key, "moving", 1);
  const down = PROVIDERS.find(({ sessions }) => sessions.has("moving"));
  if (down === undefined) {
    throw new Error("no provider was called");
  }
  down.isDown = true;
  const meanwhile = await converse(key, "moving", 5);
  expect(meanwhile).not.toContain(home);
  down.isDown = false;
  await expect
    .poll(() => converse(key, "moving", 1), { timeout: 10_000 })
    .toEqual([home]);
});
