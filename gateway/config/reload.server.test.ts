import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";
import type { MockProvider } from "../../test/servers/provider.ts";
import { RunnerDouble } from "../../test/servers/runner.ts";

let testbed: Testbed;
let gateway: TestGateway;
let provider: MockProvider;

beforeAll(async () => {
  testbed = await startTestbed();
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

function write(text: string): void {
  writeFileSync(join(gateway.directory, "gateway.yaml"), text);
}

test("a reload adds new models and removes old ones while calls run", async () => {
  const key = await gateway.createKey({});
  const running = gateway.chat(key, '[mock]{"chunks":6,"chunkDelayMs":50}', {
    stream: true,
  });
  await expect.poll(() => provider.requests.length).toBe(1);
  write(modelYaml(provider.url).replace("model_name: mock", "model_name: new"));
  const reloaded = await gateway.request("POST", "/config/reload");
  expect(reloaded.status).toBe(200);
  expect((await gateway.chat(key, "x", { model: "new" })).status).toBe(200);
  expect((await gateway.chat(key, "x", { model: "mock" })).status).toBe(400);
  expect((await running).text).toContain("word5");
});

test("a retry of a call in flight uses the provider key of the reloaded configuration", async () => {
  const used: (string | undefined)[] = [];
  const reloaded = Promise.withResolvers<void>();
  const failing = createServer(async ({ headers }, response) => {
    used.push(headers.authorization);
    await reloaded.promise;
    response.writeHead(500).end();
  });
  const url = `http://127.0.0.1:${await listen(failing)}`;
  const writeKey = (apiKey: string) =>
    write(modelYaml(url).replace("provider-secret-key", apiKey));
  writeKey("revoked-key");
  await gateway.request("POST", "/config/reload");
  const call = gateway.chat(await gateway.createKey({}), "x");
  await expect.poll(() => used).toEqual(["Bearer revoked-key"]);
  writeKey("current-key");
  await gateway.request("POST", "/config/reload");
  reloaded.resolve();
  expect((await call).status).toBe(500);
  expect(used.slice(1)).toEqual(["Bearer current-key", "Bearer current-key"]);
  failing.close();
  failing.closeAllConnections();
});

test("a call that waited for a slot uses the provider key of the reloaded configuration", async () => {
  const runner = new RunnerDouble("vllm", ["m"]);
  await runner.start();
  const writeKey = (apiKey: string) =>
    write(`model_list:
  - { model_name: m, provider_params: { model: openai/m, api_base: "${runner.url}", api_key: ${apiKey}, local: true, slots: 1 } }
`);
  writeKey("revoked-key");
  await gateway.request("POST", "/config/reload");
  const key = await gateway.createKey({});
  const ask = (content: string) => gateway.chat(key, content, { model: "m" });
  runner.holdsCalls = true;
  const first = ask("first");
  await expect.poll(() => runner.requests.length).toBe(1);
  const second = ask("second");
  await expect
    .poll(async () => (await gateway.request("GET", "/metrics")).text)
    .toMatch(/^hearth_queued_calls\{.*\} 1$/m);
  writeKey("current-key");
  await gateway.request("POST", "/config/reload");
  runner.continueAll();
  expect([(await first).status, (await second).status]).toEqual([200, 200]);
  expect(runner.requests.map(({ authorization }) => authorization)).toEqual([
    "Bearer revoked-key",
    "Bearer current-key",
  ]);
  await runner.stop();
});

test("an invalid file changes nothing and is reported", async () => {
  const key = await gateway.createKey({});
  write(modelYaml(provider.url).replace("model_name: mock", "model_name: new"));
  await gateway.request("POST", "/config/reload");
  write("model_list: many\n");
  const refused = await gateway.request("POST", "/config/reload");
  expect(refused.status).toBe(400);
  expect(refused.json["error"]?.["message"]).toMatch(/gateway\.yaml:1/);
  expect((await gateway.chat(key, "y", { model: "new" })).status).toBe(200);
});

test("a check and a reload name settings without effect", async () => {
  const models = modelYaml(provider.url).replace("mock", "new");
  write(`${models}proxy_setings: {}\n`);
  for (const path of ["/config/check", "/config/reload"]) {
    const { json } = await gateway.request("POST", path);
    expect(json["warnings"]).toEqual([
      expect.stringMatching(
        /^.*gateway\.yaml:\d+: unknown setting "proxy_setings" \(did you mean "proxy_settings"\?\); it has no effect$/,
      ),
    ]);
  }
});

test("a check reports the problems of the next start, and changes nothing", async () => {
  const key = await gateway.createKey({});
  const check = async () =>
    (await gateway.request("POST", "/config/check")).json["mistakes"];
  write("model_list: many\n");
  expect(await check()).toEqual([
    expect.stringMatching(/gateway\.yaml:1: .*model_list/),
  ]);
  write(modelYaml(provider.url).replace("model_name: mock", "model_name: off"));
  expect(await check()).toEqual([]);
  expect((await gateway.chat(key, "x", { model: "off" })).status).toBe(400);
  expect((await gateway.chat(key, "y", { model: "new" })).status).toBe(200);
});

test("a budget in use stays used up after a reload with another time zone, which the next start applies", async () => {
  write(modelYaml(provider.url));
  await gateway.request("POST", "/config/reload");
  const key = await gateway.createKey({
    max_budget: 1e-9,
    budget_duration: "1d",
  });
  await gateway.chat(key, "first");
  const isExceeded = async () => {
    await gateway.running.gateway.ledger.flush();
    const { json } = await gateway.chat(key, "next");
    return String(json["error"]?.["type"]) === "budget_exceeded";
  };
  await expect.poll(isExceeded).toBe(true);
  write(
    `${modelYaml(provider.url)}general_settings: { timezone: Asia/Tokyo }\n`,
  );
  const { json } = await gateway.request("POST", "/config/reload");
  expect(json["need_restart"]).toEqual(["general.timezone"]);
  expect(await isExceeded()).toBe(true);
  expect(await isExceeded()).toBe(true);
});

test("only the master key may check and reload", async () => {
  const key = await gateway.createKey({});
  for (const path of ["/config/check", "/config/reload"]) {
    expect((await gateway.request("POST", path, undefined, key)).status).toBe(
      403,
    );
  }
});
