import { writeFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  MASTER_KEY,
  OUTPUT_PRICE,
  startTestGateway,
  type Json,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen, portOf } from "../../test/servers/ports.ts";

/** Said by the model, in chunks of a few letters. */
let says = "hello";
/** What the model was sent, latest last. */
const sent: Json[] = [];
/** How the guardrail's service answers. */
let decide: (question: Json, response: ServerResponse) => void = pass;
const questions: Json[] = [];

function pass(_question: Json, response: ServerResponse): void {
  response.end(JSON.stringify({ action: "NONE" }));
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  let text = "";
  for await (const part of request) {
    text += String(part);
  }
  return JSON.parse(text) as Json;
}

const USAGE = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };

const provider = createServer((request, response) => {
  void bodyOf(request).then((body) => {
    sent.push(body);
    if (request.url?.endsWith("/moderations") === true) {
      const flagged = JSON.stringify(body["input"]).includes("violent");
      response.end(
        JSON.stringify({
          results: [
            { flagged, categories: { violence: flagged, hate: false } },
          ],
        }),
      );
    } else if (request.url?.endsWith("/embeddings") === true) {
      const data = [body["input"]]
        .flat()
        .map((_, index) => ({ index, embedding: [0.5] }));
      response.end(JSON.stringify({ data, usage: { prompt_tokens: 3 } }));
    } else if ((body["stream"] as unknown) === true) {
      void stream(response);
    } else {
      const message = { role: "assistant", content: says };
      response.end(
        JSON.stringify({
          id: "a",
          choices: [{ index: 0, message }],
          usage: USAGE,
        }),
      );
    }
  });
});

/** Awaited at `|` in what the model says, which is not sent. */
let resumed = Promise.resolve();

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const write = (event: object) =>
    response.write(`data: ${JSON.stringify({ id: "a", ...event })}\n\n`);
  for (const [part, text] of says.split("|").entries()) {
    if (part > 0) {
      await resumed;
    }
    for (let at = 0; at < text.length; at += 3) {
      const content = text.slice(at, at + 3);
      write({ choices: [{ index: 0, delta: { content } }] });
    }
  }
  write({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  write({ choices: [], usage: USAGE });
  response.end("data: [DONE]\n\n");
}

const service = createServer((request, response) => {
  void bodyOf(request).then((body) => {
    questions.push({ ...body, headers: request.headers } as unknown as Json);
    decide(body, response);
  });
});

function yaml(guardrails: string): string {
  const url = `http://127.0.0.1:${portOf(provider)}/v1`;
  const model = (alias: string, more = "") =>
    `  - { model_name: ${alias}, litellm_params: { model: openai/m, api_base: "${url}", api_key: x, input_cost_per_token: ${INPUT_PRICE}, output_cost_per_token: ${OUTPUT_PRICE}${more} } }`;
  return `
model_list:
${model("mock")}
${model("guarded", ", guardrails: [ids]")}
${model("embed")}
${model("plain")}
  - model_name: judge
    litellm_params: { model: openai/judge, api_base: "${url}", api_key: x, input_cost_per_token: 0.001 }
    model_info: { mode: moderation }
router_settings: { num_retries: 0, fallbacks: [{ broken: [guarded] }] }
litellm_settings: { litellm_headers: true, cache: true, cache_params: { type: memory, supported_call_types: [acompletion, aembedding] } }
${guardrails}
`;
}

const GUARDRAILS = (address: string) => `
guardrails:
  - guardrail_name: ids
    litellm_params:
      guardrail: litellm_content_filter
      mode: [pre_call, post_call]
      stream_window: 12
      patterns: [{ pattern_type: regex, name: id, pattern: 'id-\\d{5}', action: MASK }]
  - guardrail_name: words
    litellm_params: { guardrail: litellm_content_filter, mode: [pre_call, post_call], stream_window: 12, blocked_words: [{ keyword: Forbidden }] }
  - guardrail_name: late
    litellm_params: { guardrail: litellm_content_filter, mode: during_call, blocked_words: [{ keyword: forbidden }] }
  - guardrail_name: no-secrets
    litellm_params: { guardrail: hide-secrets, mode: pre_call }
    guardrail_info: { about: keys and tokens }
  - guardrail_name: moderated
    litellm_params: { guardrail: openai_moderation, mode: pre_call, model: judge }
  - guardrail_name: service
    litellm_params: { guardrail: generic_guardrail_api, mode: [pre_call, post_call], api_base: "${address}", api_key: service-key, timeout: 300ms, additional_provider_specific_params: { threshold: 0.8 } }
  - guardrail_name: lenient
    litellm_params: { guardrail: generic_guardrail_api, mode: [pre_call, post_call], api_base: "${address}", timeout: 300ms, unreachable_fallback: fail_open }
`;

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;
let config: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  for (const server of [provider, service]) {
    await listen(server);
  }
  config = yaml(GUARDRAILS(`http://127.0.0.1:${portOf(service)}`));
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: "",
    yaml: config,
  });
  key = await gateway.createKey({ key_alias: "caller" });
});

afterAll(async () => {
  await gateway?.stop();
  for (const server of [provider, service]) {
    server.closeAllConnections();
    server.close();
  }
  await database?.drop();
});

beforeEach(() => {
  says = "hello";
  decide = pass;
  sent.length = 0;
  questions.length = 0;
});

const chat = (prompt: string, fields: object = {}, sender = key) =>
  gateway.chat(sender, prompt, { ...fields });
const errorOf = (answer: TestAnswer) => answer.json["error"] as Json;
const applied = (answer: TestAnswer) =>
  answer.headers.get("x-litellm-applied-guardrails");
const contentOf = ({ json }: TestAnswer) =>
  (json as unknown as { choices: { message: { content: string } }[] })
    .choices[0]?.message.content;
const streamed = ({ text }: TestAnswer) =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map(
      (event) =>
        JSON.parse(event.slice(6)) as {
          choices?: { delta: { content?: string } }[];
        },
    )
    .map(({ choices }) => choices?.[0]?.delta.content ?? "")
    .join("");

async function rowOf(headers: Headers): Promise<Json> {
  const id = headers.get("x-hearth-call-id");
  let rows: Json[] = [];
  await expect
    .poll(async () => {
      const { json } = await gateway.request(
        "GET",
        `/spend/logs?request_id=${id}`,
      );
      rows = json as unknown as Json[];
      return rows.length;
    })
    .toBe(1);
  return rows[0] ?? {};
}

const COST = 10 * INPUT_PRICE + 20 * OUTPUT_PRICE;

test("what a prompt must not contain is masked before the provider sees it, and answers for the client", async () => {
  says = "you said id-54321, didn't you?";
  const answer = await chat("it is id-12345", { guardrails: ["ids"] });
  expect(answer.status).toBe(200);
  expect(JSON.stringify(sent.at(-1))).toContain("it is [ID_REDACTED]");
  expect(sent.at(-1)).not.toHaveProperty("guardrails");
  expect(contentOf(answer)).toBe("you said [ID_REDACTED], didn't you?");
  expect(applied(answer)).toBe("ids");
  const plain = await chat("it is id-12345");
  expect(contentOf(plain)).toBe(says);
  expect(applied(plain)).toBeNull();
});

test("a blocked prompt reaches no provider; who sent it and why is recorded, never the text", async () => {
  const answer = await chat("a FORBIDDEN prompt about Anna", {
    guardrails: ["words"],
  });
  expect(answer.status).toBe(400);
  expect(errorOf(answer)).toEqual({
    message:
      "Content blocked by guardrail words: Forbidden found, in the prompt.",
    type: "guardrail_blocked",
    param: null,
    code: "400",
  });
  expect(applied(answer)).toBe("words");
  expect(sent).toEqual([]);
  await expect
    .poll(
      async () =>
        (await gateway.request("GET", "/me/usage", undefined, key)).text,
    )
    .toContain("Content blocked by guardrail words");
  const usage = await gateway.request("GET", "/me/usage", undefined, key);
  expect(usage.text).not.toContain("Anna");
  const metrics = await gateway.request("GET", "/metrics");
  expect(metrics.text).toMatch(
    /hearth_guardrail_checks_total\{.*outcome="blocked".*\} 1/,
  );
  expect(metrics.text).toContain(
    'hearth_refusals_total{type="guardrail_blocked"} 1',
  );
});

test("every route with texts is checked", async () => {
  const bodies = {
    "/v1/chat/completions": {
      messages: [{ role: "user", content: "forbidden" }],
    },
    "/v1/completions": { prompt: "forbidden" },
    "/v1/messages": {
      max_tokens: 9,
      system: "forbidden",
      messages: [{ role: "user", content: "x" }],
    },
    "/v1/responses": {
      input: [
        { role: "user", content: [{ type: "input_text", text: "forbidden" }] },
      ],
    },
    "/v1/embeddings": { input: ["fine", "forbidden"] },
    "/v1/images/generations": { prompt: "forbidden" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const answer = await gateway.request(
      "POST",
      path,
      { model: "mock", ...body, guardrails: ["words"] },
      key,
    );
    expect([path, answer.status]).toEqual([path, 400]);
    expect(answer.text).toContain("Content blocked by guardrail words");
  }
  expect(sent).toEqual([]);
  const numbers = await gateway.request(
    "POST",
    "/v1/embeddings",
    { model: "embed", input: [[1, 2]], guardrails: ["words"] },
    key,
  );
  expect(errorOf(numbers)["message"]).toMatch(/cannot check numbers of tokens/);
});

test("answers in the shapes of Messages, Responses and completions are masked, whole and streamed", async () => {
  says = "the number is id-12345, of course, and nothing else";
  const bodies = {
    "/v1/messages": {
      max_tokens: 9,
      messages: [{ role: "user", content: "x" }],
    },
    "/v1/responses": { input: "x" },
    "/v1/completions": { prompt: "x" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const stream of [false, true]) {
      const answer = await gateway.request(
        "POST",
        path,
        { ...body, model: "guarded", stream },
        key,
      );
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.text).not.toContain("12345");
      expect(answer.text).toContain("[ID_REDACTED]");
    }
  }
});

test("only what is new in a list of embeddings is checked and sent, masked", async () => {
  const embed = (input: readonly string[]) =>
    gateway.request(
      "POST",
      "/v1/embeddings",
      { model: "embed", input, guardrails: ["ids"] },
      key,
    );
  expect((await embed(["one", "two"])).status).toBe(200);
  expect((await embed(["one", "id-12345", "two"])).status).toBe(200);
  expect(sent.at(-1)?.["input"]).toEqual(["[ID_REDACTED]"]);
});

test("a blocked answer is not sent, and billed", async () => {
  says = "a forbidden answer";
  const answer = await chat("x", { guardrails: ["words"] });
  expect(answer.status).toBe(400);
  expect(answer.text).not.toContain("a forbidden answer");
  const row = await rowOf(answer.headers);
  expect(row).toMatchObject({ status: "failure", completion_tokens: 20 });
  expect(row["spend"]).toBeCloseTo(COST, 12);
  expect(JSON.stringify(row["metadata"])).toContain(
    "Content blocked by guardrail words",
  );
});

test("a stream is blocked before the text is sent; it ends with an error, and is billed", async () => {
  says = `all is well and good, |until the forbidden word comes ${"and more ".repeat(50)}`;
  let resume = () => {};
  resumed = new Promise((resolve) => (resume = resolve));
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "mock",
      stream: true,
      messages: [{ role: "user", content: "x" }],
      guardrails: ["words"],
    }),
  });
  expect(answer.status).toBe(200);
  let text = "";
  for await (const part of answer.body ?? []) {
    text += Buffer.from(part).toString();
    resume();
  }
  expect(text).toContain('"content":"all"');
  expect(text).not.toContain("for");
  expect(text).toContain('"type":"guardrail_blocked"');
  expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true);
  const row = await rowOf(answer.headers);
  expect(row["status"]).toBe("failure");
  expect(Number(row["spend"])).toBeGreaterThan(0);
  const message = await gateway.request(
    "POST",
    "/v1/messages",
    {
      model: "mock",
      max_tokens: 9,
      stream: true,
      messages: [{ role: "user", content: "x" }],
      guardrails: ["words"],
    },
    key,
  );
  expect(message.text).toMatch(/event: error\ndata: \{"type":"error"/);
  expect(message.text).not.toContain("forb");
});

test("a stream is masked over the borders of chunks; its usage and its last event stay", async () => {
  says = "one id-12345 and id-6 and id-99999";
  const answer = await chat("x", {
    guardrails: ["ids"],
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(streamed(answer)).toBe("one [ID_REDACTED] and id-6 and [ID_REDACTED]");
  expect(answer.text).toContain('"completion_tokens":20');
  expect(answer.text.trimEnd().endsWith("data: [DONE]")).toBe(true);
  expect((await rowOf(answer.headers))["spend"]).toBeCloseTo(COST, 12);
});

test("during a call the answer waits for the check of the prompt, and what it cost is billed", async () => {
  for (const stream of [false, true]) {
    const answer = await chat("a forbidden prompt", {
      guardrails: ["late"],
      stream,
    });
    expect([stream, answer.status]).toEqual([stream, 400]);
    expect(errorOf(answer)["message"]).toContain("guardrail late");
    expect(sent.length).toBeGreaterThan(0);
    const row = await rowOf(answer.headers);
    expect(row["status"]).toBe("failure");
    expect(Number(row["spend"])).toBeGreaterThan(0);
  }
  expect((await chat("fine", { guardrails: ["late"] })).status).toBe(200);
});

test("keys, teams and models require guardrails, which a call cannot switch off", async () => {
  const team = await gateway.request("POST", "/team/new", {
    guardrails: ["words"],
  });
  expect(team.json["guardrails"]).toEqual(["words"]);
  const callers = {
    key: await gateway.createKey({ guardrails: ["words"] }),
    metadata: await gateway.createKey({ metadata: { guardrails: ["words"] } }),
    team: await gateway.createKey({ team_id: team.json["team_id"] }),
  };
  for (const sender of Object.values(callers)) {
    for (const off of [
      {},
      { guardrails: [] },
      { disable_global_guardrails: true },
      { guardrails: ["ids"] },
    ]) {
      expect((await chat("forbidden", off, sender)).status).toBe(400);
    }
    const off = await chat(
      "x",
      { metadata: { guardrails: { words: false } } },
      sender,
    );
    expect([off.status, errorOf(off)["type"]]).toEqual([
      403,
      "permission_denied",
    ]);
  }
  says = "id-12345";
  expect(contentOf(await chat("x", { model: "guarded" }))).toBe(
    "[ID_REDACTED]",
  );
});

test("an unknown guardrail is rejected with the name that was meant, in calls and of keys, teams and models", async () => {
  const answer = await chat("x", { guardrails: ["word"] });
  expect([answer.status, errorOf(answer)["param"]]).toEqual([
    400,
    "guardrails",
  ]);
  expect(errorOf(answer)["message"]).toContain("Did you mean words?");
  const parameters = await chat("x", {
    guardrails: [{ ids: { extra_body: { a: 1 } } }],
  });
  expect(errorOf(parameters)["message"]).toContain("must be a list of names");
  for (const [path, body] of [
    ["/key/generate", { guardrails: ["pii"] }],
    ["/team/new", { guardrails: ["pii"] }],
    [
      "/model/new",
      {
        model_name: "x",
        litellm_params: {
          model: "openai/x",
          api_base: "http://127.0.0.1:1",
          guardrails: ["pii"],
        },
      },
    ],
  ] as const) {
    const refused = await gateway.request("POST", path, body);
    expect([path, refused.status]).toEqual([path, 400]);
    expect(refused.text).toContain("unknown guardrail, pii");
  }
});

test("a call falls back only to models whose guardrails it has", async () => {
  const fallbacks = ["guarded"];
  const fields = { fallbacks, mock_testing_fallbacks: true };
  const without = await chat("x", fields, MASTER_KEY);
  expect(without.status).toBeGreaterThanOrEqual(400);
  const covered = await chat(
    "x",
    { ...fields, guardrails: ["ids"] },
    MASTER_KEY,
  );
  expect(covered.status).toBe(200);
});

test("what a fallback gets instead is checked too", async () => {
  const answer = await chat(
    "x",
    {
      guardrails: ["ids"],
      mock_testing_fallbacks: true,
      fallbacks: [
        { model: "plain", messages: [{ role: "user", content: "id-12345" }] },
      ],
    },
    MASTER_KEY,
  );
  expect(answer.status).toBe(200);
  expect(JSON.stringify(sent.at(-1))).toContain("[ID_REDACTED]");
});

test("a service gets texts and caller in LiteLLM's shape, and its decision is followed", async () => {
  decide = (question, response) => {
    const texts = question["texts"] as unknown as string[];
    response.end(
      JSON.stringify({
        action: "GUARDRAIL_INTERVENED",
        texts: texts.map((text) => text.replaceAll("bad", "good")),
      }),
    );
  };
  says = "not bad";
  const answer = await chat("so bad", {
    guardrails: ["service"],
    user: "end-user",
  });
  expect(contentOf(answer)).toBe("not good");
  expect(JSON.stringify(sent.at(-1))).toContain("so good");
  expect(questions[0]).toMatchObject({
    texts: ["so bad"],
    input_type: "request",
    litellm_call_id: answer.headers.get("x-hearth-call-id"),
    additional_provider_specific_params: { threshold: 0.8 },
    request_data: {
      user_api_key_alias: "caller",
      user_api_key_end_user_id: "end-user",
    },
    headers: { "x-api-key": "service-key" },
  });
  expect(questions[1]).toMatchObject({
    input_type: "response",
    texts: ["not bad"],
  });

  decide = (_question, response) =>
    response.end(
      JSON.stringify({ action: "BLOCKED", blocked_reason: "quotes Anna" }),
    );
  const blocked = await chat("about Anna", { guardrails: ["service"] });
  expect(errorOf(blocked)["message"]).toBe(
    "Content blocked by guardrail service: quotes Anna, in the prompt.",
  );
  await expect
    .poll(
      async () =>
        (await gateway.request("GET", "/me/usage", undefined, key)).text,
    )
    .toContain("guardrail service: its service objects");
  expect(
    (await gateway.request("GET", "/me/usage", undefined, key)).text,
  ).not.toContain("Anna");
});

const FAILURES: Readonly<Record<string, (response: ServerResponse) => void>> = {
  hangs: () => undefined,
  dies: (response) => response.destroy(),
  "answers 500": (response) => response.writeHead(500).end("no"),
  "answers nonsense": (response) => response.end("<html>"),
  "answers another shape": (response) => response.end('{"action":"FINE"}'),
  "answers too few texts": (response) =>
    response.end('{"action":"GUARDRAIL_INTERVENED","texts":[]}'),
};

test.each(Object.keys(FAILURES))(
  "while a service %s, calls are rejected, or pass where that is configured",
  async (how) => {
    decide = (_question, response) => FAILURES[how]?.(response);
    const closed = await chat(`closed ${how}`, { guardrails: ["service"] });
    expect([closed.status, errorOf(closed)["type"]]).toEqual([
      503,
      "guardrail_unavailable",
    ]);
    expect(errorOf(closed)["message"]).toMatch(
      /guardrail service is unavailable \(.+\)/,
    );
    expect(closed.headers.get("retry-after")).toBe("2");
    expect(sent).toEqual([]);
    const open = await chat(`open ${how}`, { guardrails: ["lenient", "ids"] });
    expect([open.status, applied(open)]).toEqual([200, "ids"]);
    // An answer that passed unchecked is not for others.
    decide = pass;
    const again = await chat(`open ${how}`, { guardrails: ["lenient", "ids"] });
    expect([again.headers.get("x-hearth-cache"), applied(again)]).toEqual([
      "miss",
      "ids,lenient",
    ]);
  },
);

test("vectors of texts that passed unchecked are neither cached nor shared", async () => {
  const embed = (input: string | readonly string[]) =>
    gateway.request(
      "POST",
      "/v1/embeddings",
      { model: "embed", input, guardrails: ["lenient"] },
      key,
    );
  const block = (_question: Json, response: ServerResponse) =>
    response.end(JSON.stringify({ action: "BLOCKED", blocked_reason: "no" }));
  for (const input of ["single", ["first", "second"]]) {
    decide = (_question, response) => response.writeHead(500).end("no");
    expect((await embed(input)).status).toBe(200);
    decide = block;
    expect((await embed(input)).status).toBe(400);
    expect((await embed(["second", "third"])).status).toBe(400);
    decide = pass;
    questions.length = 0;
    const checked = await embed(input);
    expect(checked.headers.get("x-hearth-cache")).toBe("miss");
    expect(questions.map(({ texts }) => texts)).toEqual([[input].flat()]);
    decide = block;
    const cached = await embed(input);
    expect([cached.status, cached.headers.get("x-hearth-cache")]).toEqual([
      200,
      "hit",
    ]);
  }
});

test("a service that fails in the middle of a stream ends it with an error", async () => {
  says = "many words ".repeat(400);
  decide = (question, response) =>
    (question["input_type"] as unknown) === "request"
      ? pass(question, response)
      : response.destroy();
  const answer = await chat("x", { guardrails: ["service"], stream: true });
  expect(streamed(answer)).toBe("");
  expect(answer.text).toContain('"type":"guardrail_unavailable"');
  expect((await rowOf(answer.headers))["status"]).toBe("failure");
});

test("an answer is cached for calls with the same guardrails only", async () => {
  says = "cached id-12345";
  const prompt = "cache this";
  expect(contentOf(await chat(prompt))).toBe(says);
  const guarded = await chat(prompt, { guardrails: ["ids"] });
  expect(guarded.headers.get("x-hearth-cache")).toBe("miss");
  const again = await chat(prompt, { guardrails: ["ids"] });
  expect(again.headers.get("x-hearth-cache")).toBe("hit");
  expect(contentOf(again)).toBe("cached [ID_REDACTED]");
  expect(applied(again)).toBe("ids");
});

test("a moderation is billed to the caller in a row of its own, and takes no place in its limits", async () => {
  const limited = await gateway.createKey({
    rpm_limit: 1,
    max_budget: 1,
    max_parallel_requests: 1,
  });
  const answer = await chat("peaceful", { guardrails: ["moderated"] }, limited);
  expect(answer.status).toBe(200);
  const other = await gateway.createKey({ max_budget: 1 });
  const blocked = await chat("violent", { guardrails: ["moderated"] }, other);
  expect(errorOf(blocked)["message"]).toBe(
    "Content blocked by guardrail moderated: violence, in the prompt.",
  );
  const rows = async () =>
    (await gateway.request("GET", `/spend/logs?api_key=${other}`))
      .json as unknown as Json[];
  await expect.poll(async () => (await rows()).length).toBe(1);
  const [row] = await rows();
  expect(row).toMatchObject({
    call_type: "amoderation",
    model_group: "judge",
    status: "success",
  });
  expect(Number(row?.["spend"])).toBeGreaterThan(0);
  const info = await gateway.request("GET", `/key/info?key=${other}`);
  expect((info.json["info"] as Json)["spend"]).toBe(row?.["spend"]);
  const check = await gateway.request("GET", "/spend/check");
  expect(check.status).toBe(200);
  expect(check.text).not.toContain('"ok":false');
});

test("guardrails are listed, and applied to a text", async () => {
  const { json } = await gateway.request(
    "GET",
    "/guardrails/list",
    undefined,
    key,
  );
  const listed = json["guardrails"] as unknown as Json[];
  expect(listed).toHaveLength(7);
  expect(listed[3]).toEqual({
    guardrail_name: "no-secrets",
    litellm_params: {
      guardrail: "hide-secrets",
      mode: ["pre_call"],
      default_on: false,
    },
    guardrail_info: { about: "keys and tokens" },
  });
  expect(JSON.stringify(json)).not.toContain("service-key");
  const apply = (name: string, text: string, sender = key) =>
    gateway.request(
      "POST",
      "/guardrails/apply_guardrail",
      { guardrail_name: name, text, language: "en", entities: [] },
      sender,
    );
  const token = `ghp_${"16C7e42F292c6912E7710c838347Ae178B4a"}`;
  expect((await apply("no-secrets", `it is ${token}`)).json).toEqual({
    response_text: "it is [REDACTED]",
  });
  expect((await apply("words", "forbidden")).status).toBe(400);
  const unknown = await apply("wordz", "x");
  expect([unknown.status, errorOf(unknown)["message"]]).toEqual([
    400,
    expect.stringContaining("Did you mean words?"),
  ]);
  expect((await apply("moderated", "violent")).status).toBe(400);
  const poor = await gateway.createKey({ max_budget: 0 });
  const rejected = await apply("moderated", "peaceful", poor);
  expect([rejected.status, errorOf(rejected)["type"]]).toEqual([
    400,
    "budget_exceeded",
  ]);
});

test("a reload replaces guardrails; a key that requires one that is gone is rejected, never unguarded", async () => {
  const file = join(gateway.directory, "gateway.yaml");
  const bound = await gateway.createKey({ guardrails: ["words"] });
  const only = `
guardrails:
  - guardrail_name: every
    litellm_params: { guardrail: litellm_content_filter, mode: pre_call, default_on: true, blocked_words: [{ keyword: now }] }
`;
  writeFileSync(file, yaml(only).replace(", guardrails: [ids]", ""));
  const reloaded = await gateway.request("POST", "/config/reload");
  expect([reloaded.status, reloaded.json["settings"]]).toEqual([
    200,
    ["guardrails"],
  ]);
  expect(reloaded.json["need_restart"]).toEqual([]);
  expect((await chat("not now")).status).toBe(400);
  expect((await chat("later")).status).toBe(200);
  const gone = await chat("x", {}, bound);
  expect([gone.status, errorOf(gone)["type"]]).toEqual([
    503,
    "guardrail_unavailable",
  ]);
  expect(errorOf(gone)["message"]).toContain("The guardrail words");
  writeFileSync(file, yaml("").replace(", guardrails: [ids]", ""));
  expect((await gateway.request("POST", "/config/reload")).status).toBe(200);
  expect((await chat("not now")).status).toBe(200);
  const none = await chat("x", { guardrails: ["words"] });
  expect(errorOf(none)["message"]).toContain("This gateway runs no guardrails");
});
