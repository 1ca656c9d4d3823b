import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino, type Logger } from "pino";
import { formatProblem } from "../../core/config/problem.ts";
import { loggedError } from "../../core/failure.ts";
import { loadConfig } from "../../gateway/config/load.ts";
import { startGateway, type RunningGateway } from "../../gateway/start.ts";
import { throwAwayDatabase } from "./database.ts";
import {
  startMockProvider,
  type MockOptions,
  type MockProvider,
} from "./provider.ts";
import { waitFor } from "../wait-for.ts";

export const MASTER_KEY = "sk-master-key-of-the-tests";

export interface TestGateway {
  readonly running: RunningGateway;
  readonly url: string;
  readonly directory: string;
  /** Sends a request with `key` (the master key by default) and a JSON body or a form; parses a JSON response. */
  request(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
    headers?: Record<string, string>,
  ): Promise<TestAnswer>;
  /** The same, for the JSON of an answer; throws unless its status is 200. */
  ask(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<Json>;
  /** Creates a virtual key. */
  createKey(fields?: Readonly<Record<string, unknown>>): Promise<string>;
  chat(
    key: string,
    prompt: string,
    fields?: Readonly<Record<string, unknown>>,
  ): Promise<TestAnswer>;
  stop(): Promise<void>;
}

export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

/** Parsed JSON whose shape the test asserts. */
export interface Json {
  readonly [name: string]: Json;
}

/** Starts a gateway in this process on a free port; by default its only alias is `mock`, of the given provider. */
export async function startTestGateway(options: {
  readonly databaseUrl: string;
  readonly providerUrl: string;
  readonly yaml?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly directory?: string;
  readonly log?: Logger;
  /** Whether to return without waiting until the gateway is ready. */
  readonly atOnce?: true;
}): Promise<TestGateway> {
  const directory =
    options.directory ?? mkdtempSync(join(tmpdir(), "hearth-test-gateway-"));
  const file = join(directory, "gateway.yaml");
  writeFileSync(file, options.yaml ?? modelYaml(options.providerUrl));
  const env = {
    DATABASE_URL: options.databaseUrl,
    PROXY_MASTER_KEY: MASTER_KEY,
    HEARTH_JOURNAL_DIR: join(directory, "journal"),
    HEARTH_DRAIN_NOTICE: "0s",
    ...options.env,
  };
  const readConfig = () =>
    loadConfig({
      file,
      port: 0,
      projectRoot: fileURLToPath(new URL("../..", import.meta.url)),
      env,
    });
  const loaded = readConfig();
  if (!loaded.ok) {
    throw new Error(loaded.problems.map(formatProblem).join("\n"));
  }
  const running = await startGateway({
    config: loaded.config,
    readConfig,
    log:
      options.log ??
      pino({
        level: process.env["TEST_LOG"] ?? "silent",
        serializers: { error: loggedError },
      }),
    version: "0.0.0-test",
    env,
  });
  const url = `http://127.0.0.1:${running.port}`;

  async function request(
    method: string,
    path: string,
    body?: unknown,
    key = MASTER_KEY,
    headers: Record<string, string> = {},
  ): Promise<TestAnswer> {
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined || body instanceof FormData
          ? {}
          : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : {
            body:
              typeof body === "string" || body instanceof FormData
                ? body
                : JSON.stringify(body),
          }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: parsed(text),
    };
  }

  async function ask(
    ...[method, path, ...rest]: Parameters<TestGateway["ask"]>
  ): Promise<Json> {
    const { status, text, json } = await request(method, path, ...rest);
    if (status !== 200) {
      throw new Error(`${method} ${path}: ${status} ${text}`);
    }
    return json;
  }

  if (options.atOnce !== true) {
    await untilReady(url);
  }
  return {
    running,
    url,
    directory,
    request,
    ask,
    async createKey(fields = {}) {
      const created = await ask("POST", "/key/generate", fields);
      return String(created["key"]);
    },
    chat: (key, prompt, fields = {}) =>
      request(
        "POST",
        "/v1/chat/completions",
        {
          model: "mock",
          messages: [{ role: "user", content: prompt }],
          ...fields,
        },
        key,
      ),
    async stop() {
      await running.stop();
      if (options.directory === undefined) {
        rmSync(directory, { recursive: true, force: true });
      }
    },
  };
}

/** Dollars per token of the alias `mock`. */
export const INPUT_PRICE = 0.000001;
export const OUTPUT_PRICE = 0.000002;

export function modelYaml(providerUrl: string, more = ""): string {
  return `
model_list:
  - model_name: mock
    provider_params:
      model: openai/mock-model
      api_base: ${providerUrl}
      api_key: provider-secret-key
      input_cost_per_token: ${INPUT_PRICE}
      output_cost_per_token: ${OUTPUT_PRICE}
${more}
`;
}

async function untilReady(url: string): Promise<void> {
  await waitFor("the gateway to be ready", async () => {
    const ready = await fetch(`${url}/health/readiness`).catch(() => null);
    return ready?.status === 200;
  });
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}

/** A database, a mock provider and a gateway for one test file. */
export interface Testbed {
  readonly gateway: TestGateway;
  readonly provider: MockProvider;
  stop(): Promise<void>;
}

/** Starts all three; `yaml` returns the configuration for the provider's URL. */
export async function startTestbed(
  yaml: (providerUrl: string) => string = modelYaml,
): Promise<Testbed> {
  const database = await throwAwayDatabase();
  const provider = await startMockProvider();
  const gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: yaml(provider.url),
  });
  return {
    gateway,
    provider,
    async stop() {
      await gateway.stop();
      await provider.close();
      await database.drop();
    },
  };
}

/** A testbed with a second provider, for what happens after failures of one. */
export interface PairTestbed extends Testbed {
  readonly other: MockProvider;
}

/** `yaml` returns the configuration for the URLs of the provider and of the other one, which behaves as `options` say. */
export async function startPairTestbed(
  options: MockOptions,
  yaml: (providerUrl: string, otherUrl: string) => string,
): Promise<PairTestbed> {
  const other = await startMockProvider(options);
  const testbed = await startTestbed((url) => yaml(url, other.url));
  return {
    ...testbed,
    other,
    async stop() {
      await testbed.stop();
      await other.close();
    },
  };
}
