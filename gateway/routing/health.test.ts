import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { secret } from "../config/secret.ts";
import type { PricedDeployment } from "./catalog.ts";
import { ModelHealth } from "./health.ts";
import { listen } from "../../test/servers/ports.ts";

let server: Server;
let port: number;
let listStatus: number;
let listed: number;
/** A header that the list of models requires. */
let required: string | null;
let called: string[];
let callError: string | null;
let answered: Map<string, number>;
let now: number;

beforeEach(async () => {
  [listStatus, listed, called, callError, now] = [200, 0, [], null, 1_000_000];
  answered = new Map();
  required = null;
  server = createServer((request, response) => {
    listed += 1;
    const isDenied = required !== null && request.headers[required] !== "it";
    response.writeHead(isDenied ? 401 : listStatus).end("{}");
  });
  port = await listen(server);
});
afterEach(() => server.close());

/** 0.0.0.0 reaches this machine but is not a private address, so it simulates a provider. */
function deployment(id: string, host = "0.0.0.0"): PricedDeployment {
  return {
    id,
    alias: id,
    model: id,
    provider: "openai",
    pending: null,
    apiBase: `http://${host}:${port}/v1`,
    apiKey: null,
    headers: { "x-own": secret("it") },
    local: null,
    priceCard: null,
  } as unknown as PricedDeployment;
}

function healthOf(...deployments: readonly PricedDeployment[]) {
  const health = new ModelHealth({
    deployments: () => deployments,
    tryDeployment: async ({ id }) => {
      called.push(id);
      return callError;
    },
    cooldownOf: () => ({ cooling: null, calls: 0, failures: 0, rejections: 0 }),
    runnerOf: () => null,
    answeredAt: (id) => answered.get(id) ?? null,
    now: () => now,
  });
  return async (recentMs: number | null) => {
    const report = await health.check({ deep: false, recentMs });
    return report.unhealthy_endpoints.map(
      ({ model_name, error }) => `${model_name}: ${error}`,
    );
  };
}

test("a deployment that answered a call recently is not checked until later", async () => {
  const health = healthOf(
    deployment("cloud"),
    deployment("local", "127.0.0.1"),
  );
  answered.set("cloud", now - 599_999).set("local", now - 599_999);
  expect(await health(600_000)).toEqual([]);
  expect([listed, called]).toEqual([0, []]);
  now += 1;
  expect(await health(600_000)).toEqual([]);
  expect([listed, called]).toEqual([2, []]);
});

test("a call in the future, before the clock was set back, does not stay recent", async () => {
  const health = healthOf(deployment("cloud"));
  answered.set("cloud", now + 86_400_000);
  expect(await health(600_000)).toEqual([]);
  expect(listed).toBe(1);
});

test("a provider without a model list is called; one that denies the key is not", async () => {
  const health = healthOf(deployment("cloud"));
  listStatus = 404;
  expect(await health(600_000)).toEqual([]);
  expect(called).toEqual(["cloud"]);
  callError = "no such model";
  now += 60_000;
  expect(await health(600_000)).toEqual(["cloud: no such model"]);
  now += 60_000;
  listStatus = 401;
  called = [];
  expect(await health(600_000)).toEqual([
    `cloud: http://0.0.0.0:${port}/v1 answered 401 to a request for its model list`,
  ]);
  expect(called).toEqual([]);
});

test("a runner's list of models is requested with the headers of its deployment", async () => {
  required = "x-own";
  expect(await healthOf(deployment("runner", "127.0.0.1"))(null)).toEqual([]);
  required = "x-other";
  expect(await healthOf(deployment("runner", "127.0.0.1"))(null)).toHaveLength(
    1,
  );
});

test("a key that a runner denies does not make its other deployments unhealthy", async () => {
  required = "x-own";
  const denied = {
    ...deployment("denied", "127.0.0.1"),
    headers: { "x-own": secret("another") },
  };
  const health = healthOf(
    denied,
    deployment("first", "127.0.0.1"),
    deployment("second", "127.0.0.1"),
  );
  expect(await health(null)).toEqual([
    `denied: http://127.0.0.1:${port}/v1 answered 401 to a request for its model list`,
  ]);
  expect(listed).toBe(2);
});

test("a stopped runner is unhealthy; without recentMs a provider is called", async () => {
  const health = healthOf(
    deployment("cloud"),
    deployment("local", "127.0.0.1"),
  );
  expect(await health(null)).toEqual([]);
  expect([listed, called]).toEqual([1, ["cloud"]]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  now += 60_000;
  const silent = await health(600_000);
  expect(silent.map((each) => each.split(":")[0])).toEqual(["cloud", "local"]);
});
