import { createServer, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { listen } from "../../../test/servers/ports.ts";

let server: Server | undefined;
let requests: string[];

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function probe(
  healthy: readonly string[],
  unhealthy: Readonly<Record<string, string>>,
  status = 200,
) {
  requests = [];
  server = createServer((request, response) => {
    requests.push(`${request.headers.authorization} ${request.url}`);
    const body = {
      healthy_endpoints: healthy.map((model_name) => ({ model_name })),
      unhealthy_endpoints: Object.entries(unhealthy).map(
        ([model_name, error]) => ({ model_name, error }),
      ),
    };
    response.writeHead(status).end(JSON.stringify(body));
  });
  const port = await listen(server);
  return probeCheck({
    kind: "models",
    url: `http://127.0.0.1:${port}`,
    key: "sk-master",
    expect: { answered_within: "5m" },
  });
}

test("it is up if all models answer", async () => {
  expect(await probe(["a", "a", "b"], {})).toMatchObject({
    ok: true,
    text: "2 models answer",
    measures: { models: 2, models_silent: 0 },
  });
  expect(requests).toEqual(["Bearer sk-master /health?recent=300"]);
});

test("unresponsive models are a warning with their names", async () => {
  const dead = { b: "refused", c: "refused", d: "refused", e: "refused" };
  expect(await probe(["a"], dead)).toMatchObject({
    ok: false,
    level: "warning",
    text: "4 of 5 models do not answer: b (refused); c (refused); d (refused); and 1 more",
  });
});

test("one unresponsive model is counted as one", async () => {
  expect(await probe(["a"], { b: "refused" })).toMatchObject({
    level: "warning",
    text: "1 of 2 models does not answer: b (refused)",
  });
});

test("it is down if no model answers", async () => {
  expect(await probe([], { a: "refused" })).toMatchObject({
    ok: false,
    level: "down",
    text: "1 of 1 model does not answer: a (refused)",
  });
});

test("it is down if the gateway gives no answer, and the key is not displayed", async () => {
  const result = await probe([], {}, 401);
  expect(result).toMatchObject({ ok: false, level: "down" });
  expect(JSON.stringify(result)).not.toContain("sk-master");
});
