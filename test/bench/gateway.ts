import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inProject } from "../../infra/project-files.ts";
import { freePort } from "../servers/ports.ts";
import { CHAT_ALIAS, EMBEDDING_ALIAS } from "./load-requests.ts";
import { meterOf, type Meter, type ProbedCost } from "./meter.ts";
import { programFile, startProgram, type Program } from "./programs.ts";
import { waitFor } from "../wait-for.ts";

export interface BenchGateway extends Program {
  readonly port: number;
  /** Time from the start of its process to the first readiness response of 200. */
  readonly readyMs: number;
  readonly meter: Meter<ProbedCost>;
  /** Sends a request with the master key. */
  admin(method: string, path: string, body?: unknown): Promise<Json>;
  /** Waits until all journaled calls are in the ledger. */
  drained(): Promise<void>;
  /** Returns the number of rows in the journal that are not in the ledger yet. */
  journaled(): Promise<number>;
}

type Json = Readonly<Record<string, unknown>>;

interface GatewayOptions {
  readonly directory: string;
  readonly databaseUrl: string;
  readonly redisPort: number;
  readonly providerPort: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Dollars per token of every alias. */
export const INPUT_PRICE = 0.000_000_15;
export const OUTPUT_PRICE = 0.000_000_6;

const MASTER_KEY = "sk-master-key-of-the-benchmark";
const MAIN = fileURLToPath(new URL("../../gateway/main.ts", import.meta.url));
/** The first start fills it. */
const COMPILE_CACHE = inProject("node_modules/.cache/hearth-bench");
const READY_WITHIN_MS = 60_000;
const DRAINED_WITHIN_MS = 300_000;

/** Starts the gateway as `npm run gateway` does, with all features enabled, and waits until it is ready. */
export async function startBenchGateway(
  options: GatewayOptions,
): Promise<BenchGateway> {
  const file = join(options.directory, "gateway.yaml");
  writeFileSync(file, configuration(options.providerPort));
  const port = await freePort();
  const startedAt = performance.now();
  const program = startProgram(MAIN, {
    name: "gateway",
    args: ["--config", file, "--port", String(port)],
    nodeArgs: ["--max-semi-space-size=16", "--import", programFile("probe.ts")],
    env: {
      DATABASE_URL: options.databaseUrl,
      PROXY_MASTER_KEY: MASTER_KEY,
      HEARTH_JOURNAL_DIR: join(options.directory, "journal"),
      HEARTH_DRAIN_NOTICE: "0s",
      REDIS_HOST: "127.0.0.1",
      REDIS_PORT: String(options.redisPort),
      // As at home and in images.
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      MALLOC_ARENA_MAX: "2",
      ...options.env,
    },
  });
  const readiness = () =>
    fetch(`http://127.0.0.1:${port}/health/readiness`).then(
      async (answer) =>
        answer.status === 200 ? ((await answer.json()) as Readiness) : null,
      () => null,
    );
  try {
    await waitFor(
      "the gateway to be ready",
      async () => !program.running() || (await readiness()) !== null,
      { withinMs: READY_WITHIN_MS, everyMs: 5 },
    );
    if (!program.running()) {
      throw new Error("the process ended");
    }
  } catch (error) {
    await program.stop();
    throw new Error(
      `the gateway did not become ready. Output: ${program.output().trim()}`,
      { cause: error },
    );
  }
  const readyMs = performance.now() - startedAt;

  async function journaled(): Promise<number> {
    const ready = await readiness();
    if (ready === null) {
      throw new Error("the gateway is no longer ready");
    }
    return ready.journal.pending;
  }

  return {
    ...program,
    port,
    readyMs,
    meter: meterOf(program),
    journaled,
    async drained() {
      await waitFor(
        "all calls in the ledger",
        async () => (await journaled()) === 0,
        { withinMs: DRAINED_WITHIN_MS, everyMs: 50 },
      );
    },
    async admin(method, path, body) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${MASTER_KEY}`,
          "content-type": "application/json",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) {
        throw new Error(`${method} ${path} answered ${text}`);
      }
      return JSON.parse(text) as Json;
    },
  };
}

interface Readiness {
  readonly journal: { readonly pending: number };
}

/** Cache entries expire after a minute; otherwise unique prompts would fill Redis with responses that are never used. */
function configuration(providerPort: number): string {
  const deployment = (model: string) => `
    provider_params:
      model: openai/${model}
      api_base: http://127.0.0.1:${providerPort}/v1
      api_key: key-of-the-mock-provider
      input_cost_per_token: ${INPUT_PRICE}
      output_cost_per_token: ${OUTPUT_PRICE}`;
  return `
model_list:
  - model_name: ${CHAT_ALIAS}${deployment("gpt-4o-mini")}
  - model_name: ${EMBEDDING_ALIAS}${deployment("text-embedding-3-small")}
    model_info: { mode: embedding }
proxy_settings:
  cache: true
  cache_params: { type: redis, ttl: 60 }
  max_budget: 1000000
  budget_duration: 30d
`;
}
