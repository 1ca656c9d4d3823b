import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";

const chunk = (choice: object) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, ...choice }] })}\n\n`;

/** Streams that have sent their first content, by deployment. */
const streams: Readonly<Record<"first" | "second", ServerResponse[]>> = {
  first: [],
  second: [],
};
const provider = createServer((request, response) => {
  request.resume();
  const place = request.url?.startsWith("/first") ? "first" : "second";
  streams[place].push(response);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk({ delta: { content: "some" } }));
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const url = `http://127.0.0.1:${await listen(provider)}`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
  - { model_name: pair, provider_params: { model: openai/m, api_base: "${url}/first", api_key: x } }
  - { model_name: pair, provider_params: { model: openai/m, api_base: "${url}/second", api_key: x } }
router_settings: { routing_strategy: least-busy, num_retries: 0, runner_probe_interval: never }
`,
  });
});

afterAll(async () => {
  provider.closeAllConnections();
  await gateway?.stop();
  provider.close();
  await database?.drop();
});

let prompts = 0;

/** Resolves at its first content. */
async function startStream(): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${MASTER_KEY}` },
    body: JSON.stringify({
      model: "pair",
      stream: true,
      messages: [{ role: "user", content: `prompt ${prompts++}` }],
    }),
  });
}

function finish(response: ServerResponse): void {
  response.end(
    chunk({ delta: {}, finish_reason: "stop" }) + "data: [DONE]\n\n",
  );
}

test("a deployment is busy with a stream until its end", async () => {
  const started: Response[] = [];
  for (let pair = 1; pair <= 10; pair++) {
    started.push(await startStream(), await startStream());
    expect([streams.first.length, streams.second.length]).toEqual([pair, pair]);
  }
  streams.first.forEach(finish);
  await expect
    .poll(() => gateway.running.gateway.activeCalls.count())
    .toBe(streams.second.length);
  for (let more = 1; more <= 5; more++) {
    started.push(await startStream());
    expect(streams.first.length).toBe(10 + more);
  }
  [...streams.first, ...streams.second].forEach(finish);
  const texts = await Promise.all(started.map((stream) => stream.text()));
  expect(texts.every((text) => text.includes("[DONE]"))).toBe(true);
});
