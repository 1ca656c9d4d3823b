import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import { listen } from "../../test/servers/ports.ts";

const MB = 1024 * 1024;
const LIMIT_MB = 8;
/** With it the limit has room for one, and not for two. */
const LONG = 5 * MB;

/** Answers whose last byte is not sent yet. */
const unfinished: ServerResponse[] = [];
const provider = createServer((question, response) => {
  question.resume();
  if (question.headers.accept === "text/event-stream") {
    response.setHeader("content-type", "text/event-stream");
    response.write(eventOf("first"));
    // Its last line feed is missing.
    response.write(eventOf("x".repeat(LONG)).slice(0, -1));
  } else {
    response.setHeader("content-type", "application/json");
    response.write(`{"choices":[],"text":"${"x".repeat(LONG)}"`);
  }
  unfinished.push(response);
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const url = `http://127.0.0.1:${await listen(provider)}/v1`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `model_list:
  - { model_name: long, provider_params: { model: openai/m, api_base: "${url}", api_key: x, input_cost_per_token: 0.001, output_cost_per_token: 0.001 } }
general_settings: { max_request_bodies_mb: ${LIMIT_MB} }
`,
  });
  key = await gateway.createKey();
});

afterAll(async () => {
  provider.closeAllConnections();
  provider.close();
  await gateway?.stop();
  await database?.drop();
});

function eventOf(content: string): string {
  const choice = { index: 0, delta: { content }, finish_reason: null };
  return `data: ${JSON.stringify({ id: "c", choices: [choice] })}\n\n`;
}

function ask(path: string, body: object) {
  return gateway.request("POST", path, { ...body, model: "long" }, key);
}

test.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] }],
  ["/v1/embeddings", { input: "hi" }],
  ["/v1/audio/speech", { input: "hi", voice: "alloy" }],
])(
  "%s: long answers that arrive together occupy a limited memory, until each is sent",
  async (path, body) => {
    for (let round = 0; round < 2; round++) {
      const both = [ask(path, body), ask(path, body)];
      const { status, json, headers } = await Promise.race(both);
      expect(status).toBe(503);
      expect(json["error"]?.["message"]).toMatch(
        /^long: .* sent an answer for which this gateway has no memory left: try again in a moment/,
      );
      const { ledger, pool } = gateway.running.gateway;
      await ledger.flush();
      // The provider has worked.
      expect(
        await query(
          pool,
          "SELECT status, spend > 0 AS is_paid FROM spend_log WHERE request_id = $1",
          [headers.get("x-hearth-call-id")],
        ),
      ).toEqual([{ status: "failure", is_paid: true }]);
      // It was not asked again.
      expect(unfinished).toHaveLength(2);
      for (const response of unfinished.splice(0)) {
        response.end("}");
      }
      const statuses = await Promise.all(both);
      expect(statuses.map((answer) => answer.status).toSorted()).toEqual([
        200, 503,
      ]);
    }
  },
);

test("long events of streams occupy a limited memory, until each is sent", async () => {
  const stream = () =>
    ask("/v1/chat/completions", {
      messages: [{ role: "user", content: "hi" }],
      stream: true,
    });
  for (let round = 0; round < 2; round++) {
    const both = [stream(), stream()];
    await Promise.race(both);
    for (const response of unfinished.splice(0)) {
      response.write("\n");
      response.write(eventOf("y".repeat(LONG)));
      response.end("data: [DONE]\n\n");
    }
    const [whole = "", cut] = (await Promise.all(both))
      .map(({ text }) => text)
      .toSorted((a, b) => b.length - a.length);
    expect(whole.length).toBeGreaterThan(2 * LONG);
    expect(cut).toMatch(/first.*\n\n.*gateway has no memory left: try again/);
  }
});
