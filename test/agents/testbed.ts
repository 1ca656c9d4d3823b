import { expect } from "vitest";
import { createPool, query, type Pool } from "../../gateway/database/pool.ts";
import { pino } from "pino";
import { PROVIDER_SECRET } from "../clients/formats/format.ts";
import type { MockUsage } from "../clients/formats/mock-model.ts";
import { throwAwayDatabase } from "../servers/database.ts";
import {
  createGatewayProcess,
  type GatewayProcess,
} from "../servers/gateway-process.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { startOutside, type Outside } from "./outside.ts";
import {
  startScriptedProvider,
  type ScriptedProvider,
} from "./scripted-provider.ts";

/** Aliases of the shipped configuration (docs/clients.md) by what is behind them. */
export const CLOUD_ALIASES = ["claude-sonnet", "gpt-mini"] as const;
/** Runners without `/responses`: Ollama, and an OpenAI-compatible server. */
export const LOCAL_ALIASES = ["qwen-coder", "gpt-oss"] as const;

/** A model of OpenAI that takes functions by its Responses API only. */
export const RESPONSES_ALIAS = "gpt-functions";

/** The local runner under a name that Codex knows, which therefore gets `custom` tools and a search for tools. */
export const CODEX_ALIAS = "gpt-5.5";

/** Ten-millionths of a dollar per token, for every alias. */
const PRICES = { input: 30, cached: 3, output: 150 };

interface LedgerTokens {
  readonly input: number;
  /** Of them, those that the provider remembered. */
  readonly cached: number;
}

/** A gateway in a separate process, a scripted provider and the world outside, for one file of tests. */
export interface AgentTestbed {
  readonly gateway: GatewayProcess;
  readonly provider: ScriptedProvider;
  readonly outside: Outside;
  /** Creates a virtual key; without fields it has a budget of ten dollars. */
  createKey(fields?: Readonly<Record<string, unknown>>): Promise<string>;
  /**
   * Waits until the ledger of a key equals the provider's record since the script was set, to the last digit: finished calls as the
   * provider bills them, interrupted ones once, and all totals the sums of their rows.
   */
  expectExactLedger(key: string): Promise<void>;
  /** Tokens that the ledger has of a key. */
  tokensOf(key: string): Promise<LedgerTokens>;
  stop(): Promise<void>;
}

/** `deployments`: how many each alias has. */
export async function startAgentTestbed(
  deployments: 1 | 2 = 1,
): Promise<AgentTestbed> {
  const [database, provider, outside] = await Promise.all([
    throwAwayDatabase(),
    startScriptedProvider(),
    startOutside(),
  ]);
  const gateway = await createGatewayProcess({
    databaseUrl: database.url,
    yaml: configurationFor(
      deployments === 1 ? [provider.url] : [provider.url, `${provider.url}/2`],
    ),
  });
  try {
    await gateway.start();
  } catch (error) {
    await gateway.remove();
    throw error;
  }
  const pool = createPool(database.url, 2, pino({ level: "silent" }));

  async function createKey(
    fields: Readonly<Record<string, unknown>> = { max_budget: 10 },
  ): Promise<string> {
    const answer = await fetch(`${gateway.url}/key/generate`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${MASTER_KEY}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(fields),
    });
    const created = (await answer.json()) as { readonly key?: string };
    if (created.key === undefined) {
      throw new Error(`no key: ${JSON.stringify(created)}`);
    }
    return created.key;
  }

  return {
    gateway,
    provider,
    outside,
    createKey,
    async expectExactLedger(key) {
      const billed = provider.calls.flatMap(({ id, usage, finished }) =>
        usage === null ? [] : [{ id, usage, finished }],
      );
      await expect
        .poll(() => ledgerOf(pool, key))
        .toEqual({
          finished: billed
            .filter(({ finished }) => finished)
            .map(({ id, usage }) => bookedAs(id, usage))
            .toSorted(byId),
          interrupted: billed
            .filter(({ finished }) => !finished)
            .map(({ id }) => id)
            .toSorted(),
        });
      expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
    },
    async tokensOf(key) {
      const [tokens] = await query<LedgerTokens>(
        pool,
        `SELECT sum(prompt_tokens)::float8 AS input, sum(cached_tokens)::float8 AS cached
         FROM spend_log WHERE ${OF_KEY}`,
        [key],
      );
      return tokens ?? { input: 0, cached: 0 };
    },
    async stop() {
      await pool.end();
      await gateway.remove();
      await Promise.all([provider.close(), outside.close()]);
      await database.drop();
    },
  };
}

const OF_KEY = "api_key = encode(sha256(convert_to($1, 'UTF8')), 'hex')";

interface Booked {
  readonly id: string;
  readonly input: number;
  readonly output: number;
  /** Ten-millionths of a dollar, so that sums are exact. */
  readonly units: number;
}

function bookedAs(id: string, usage: MockUsage): Booked {
  const { inputTokens, cachedTokens, outputTokens } = usage;
  return {
    id,
    input: inputTokens,
    output: outputTokens,
    units:
      (inputTokens - cachedTokens) * PRICES.input +
      cachedTokens * PRICES.cached +
      outputTokens * PRICES.output,
  };
}

interface Ledger {
  readonly finished: readonly Booked[];
  /** Call ids. */
  readonly interrupted: readonly string[];
}

/** Failed calls have rows of 0, which are left out. */
async function ledgerOf(pool: Pool, key: string): Promise<Ledger> {
  const rows = await query<Booked & { readonly status: string }>(
    pool,
    `SELECT request_id AS id, prompt_tokens::float8 AS input, completion_tokens::float8 AS output,
       round(spend * 10000000, 6)::float8 AS units, status
     FROM spend_log WHERE ${OF_KEY} AND spend > 0`,
    [key],
  );
  const withStatus = (wanted: string) =>
    rows.filter(({ status }) => status === wanted).toSorted(byId);
  return {
    finished: withStatus("success").map(({ id, input, output, units }) => ({
      id,
      input,
      output,
      units,
    })),
    interrupted: withStatus("interrupted").map(({ id }) => id),
  };
}

function byId(one: { readonly id: string }, other: { readonly id: string }) {
  return one.id < other.id ? -1 : 1;
}

function configurationFor(providers: readonly string[]): string {
  const deployment = (
    provider: string,
    alias: string,
    model: string,
    base: string,
    more = "",
  ) => `
  - model_name: ${alias}
    provider_params:
      model: ${model}
      api_base: ${provider}/${base}
      api_key: ${PROVIDER_SECRET}
      input_cost_per_token: ${PRICES.input / 1e7}
      cache_read_input_token_cost: ${PRICES.cached / 1e7}
      output_cost_per_token: ${PRICES.output / 1e7}${more}`;
  const local = "\n      local: true";
  const byResponses = "\n    model_info:\n      mode: responses";
  return `model_list:${providers
    .flatMap((url) => [
      deployment(url, "gpt-mini", "openai/gpt-5-mini", "openai/v1"),
      deployment(
        url,
        "claude-sonnet",
        "anthropic/claude-sonnet-4-5",
        "anthropic",
      ),
      deployment(
        url,
        RESPONSES_ALIAS,
        "openai/gpt-5.6",
        "openai/v1",
        byResponses,
      ),
      deployment(url, "qwen-coder", "ollama/qwen2.5-coder:7b", "local/v1"),
      ...["gpt-oss", CODEX_ALIAS].map((alias) =>
        deployment(url, alias, "openai/openai/gpt-oss-20b", "local/v1", local),
      ),
    ])
    .join("")}
`;
}
