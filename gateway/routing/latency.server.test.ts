import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";

const ANSWER = {
  id: "c",
  choices: [{ index: 0, message: { role: "assistant", content: "fine" } }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
};

/** Paths of the calls. */
const called: string[] = [];
const provider = createServer((request, response) => {
  request.resume();
  const path = request.url?.split("/")[1] ?? "";
  called.push(path);
  if (path === "missing") {
    response.writeHead(404).end('{"error":{"message":"model not found"}}');
  } else if (path === "works") {
    response.writeHead(200).end(JSON.stringify(ANSWER));
  }
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const url = `http://127.0.0.1:${await listen(provider)}`;
  const deployment = (alias: string, path: string) =>
    `  - { model_name: ${alias}, provider_params: { model: openai/m, api_base: "${url}/${path}", api_key: x, timeout: 2s } }\n`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
${["hangs", "missing"].map((path) => deployment(path, path) + deployment(path, "works")).join("")}
router_settings: { routing_strategy: latency-based-routing, num_retries: 1, runner_probe_interval: never }
`,
  });
});

afterAll(async () => {
  provider.closeAllConnections();
  await gateway?.stop();
  provider.close();
  await database?.drop();
});

test.each(["hangs", "missing"])(
  "a deployment that only fails (it %s) is left for one that answers",
  async (path) => {
    for (let call = 0; call < 4; call++) {
      const answer = await gateway.chat(MASTER_KEY, `call ${call}`, {
        model: path,
      });
      expect(answer.status).toBe(200);
    }
    const failed = called.filter((one) => one === path);
    expect(failed).toHaveLength(1);
  },
);
