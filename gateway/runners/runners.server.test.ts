import { setTimeout as sleep } from "node:timers/promises";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { RunnerDouble } from "../../test/servers/runner.ts";
import { query } from "../database/pool.ts";

const PRICE = 0.001;
/** Of a call to a runner double: 5 tokens in, 2 out. */
const COST = 7 * PRICE;

const ollama = new RunnerDouble("ollama", ["llama3.2:latest", "qwen3:8b"]);
const lmStudio = new RunnerDouble("lm_studio", ["qwen2.5-7b"]);
const llamaCpp = new RunnerDouble("llama_cpp", []);
const vllm = new RunnerDouble("vllm", ["served"]);
const DOUBLES = [ollama, lmStudio, llamaCpp, vllm];

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let isStopped = false;

const yaml = () => `
model_list:
  - model_name: cold
    provider_params: { model: ollama/llama3.2, api_base: "${ollama.url}", keep_alive: 24h }
  - model_name: preloaded
    provider_params: { model: "ollama/qwen3:8b", api_base: "${ollama.url}", preload: true }
  - model_name: backed
    provider_params: { model: ollama/llama3.2, api_base: "${ollama.url}", max_retries: 0 }
  - model_name: jit
    provider_params: { model: openai/qwen2.5-7b, api_base: "${lmStudio.url}", local: true, timeout: 300ms, cold_load_timeout: 30s, max_retries: 0 }
  - model_name: line
    provider_params: { model: openai/gguf, api_base: "${llamaCpp.url}", local: true, slots: auto, queue_limit: 3, max_retries: 0, ${priced()} }
  - model_name: hasty
    provider_params: { model: openai/gguf, api_base: "${llamaCpp.url}", local: true, slots: auto, queue_timeout: 50ms, max_retries: 0 }
  - model_name: free
    provider_params: { model: openai/served, api_base: "${vllm.url}", local: true, ${priced()} }
  - model_name: away
    provider_params: { model: openai/a, api_base: "http://127.0.0.1:9/v1", local: true }
  - model_name: either
    provider_params: { model: openai/gguf, api_base: "${llamaCpp.url}", local: true, slots: auto }
  - model_name: either
    provider_params: { model: openai/served, api_base: "${vllm.url}", local: true }
router_settings:
  routing_strategy: cost-based-routing
  runner_probe_interval: 1s
  fallbacks: [{ backed: [free], away: [line] }]
general_settings: { drain_timeout: 100ms }
`;

function priced(): string {
  return `input_cost_per_token: ${PRICE}, output_cost_per_token: ${PRICE}`;
}

beforeAll(async () => {
  await Promise.all(DOUBLES.map((double) => double.start()));
  database = await throwAwayDatabase();
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: vllm.url,
    yaml: yaml(),
  });
});
afterAll(async () => {
  if (!isStopped) {
    await gateway?.stop();
  }
  await database?.drop();
  await Promise.all(DOUBLES.map((double) => double.stop()));
});
beforeEach(() => probed());
afterEach(async () => {
  for (const double of DOUBLES) {
    double.continueAll();
    double.loadError = null;
    double.isLoading = false;
    await expect.poll(() => double.running).toBe(0);
    double.requests.length = 0;
    double.mostRunning = 0;
  }
  ollama.loaded.delete("llama3.2:latest");
  lmStudio.loaded.clear();
});

/** All runners have been probed after what was changed before. */
async function probed(): Promise<void> {
  const { runners, catalog } = gateway.running.gateway;
  await Promise.all(catalog.deployments.map((one) => runners.refresh(one)));
}

const chat = (
  model: string,
  fields: object = {},
  key = MASTER_KEY,
): Promise<TestAnswer> => gateway.chat(key, "hi", { model, ...fields });

/** A call whose client leaves before it is answered; returns how. */
function leavingClient(model: string): () => Promise<void> {
  const leaving = new AbortController();
  const call = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${MASTER_KEY}` },
    body: JSON.stringify({
      model,
      messages: [{ role: "user", content: "hi" }],
    }),
    signal: leaving.signal,
  }).catch(() => undefined);
  return async () => {
    leaving.abort();
    await call;
  };
}

function contentOf({ json }: TestAnswer): unknown {
  return json["choices"]?.["0"]?.["message"]?.["content"];
}

/** A call that runs at a double which holds calls. */
async function runningAt(
  double: RunnerDouble,
  model: string,
  key = MASTER_KEY,
): Promise<Promise<TestAnswer>[]> {
  double.holdsCalls = true;
  const before = double.held;
  const call = chat(model, {}, key);
  await expect.poll(() => double.held).toBe(before + 1);
  return [call];
}

async function queued(alias: string): Promise<unknown> {
  const { json } = await gateway.request("GET", `/health?model=${alias}`);
  return json["healthy_endpoints"]?.["0"]?.["runner"]?.["queued"];
}

interface OpenStream {
  readonly status: number;
  readonly first: string;
  /** What follows, once it has ended. */
  rest(): Promise<string>;
}

/** A stream, once its first bytes have arrived. */
async function openStream(path: string, body: object): Promise<OpenStream> {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${MASTER_KEY}` },
    body: JSON.stringify({
      stream: true,
      max_tokens: 10,
      messages: [{ role: "user", content: "hi" }],
      ...body,
    }),
  });
  const chunks = response.body?.[Symbol.asyncIterator]();
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
  const first = await chunks?.next();
  return {
    status: response.status,
    first: text(first?.value ?? Buffer.of()),
    async rest() {
      let all = "";
      for (let next = await chunks?.next(); next?.done === false;) {
        all += text(next.value);
        next = await chunks?.next();
      }
      return all;
    },
  };
}

/** The rows of the ledger since a time, in the order of the calls. */
async function rowsSince(
  since: number,
): Promise<readonly { status: string; spend: number }[]> {
  const { ledger, pool } = gateway.running.gateway;
  await ledger.flush();
  return query<{ status: string; spend: number }>(
    pool,
    "SELECT status, spend::float8 AS spend FROM spend_log WHERE started_at >= to_timestamp($1) ORDER BY started_at",
    [since / 1_000],
  );
}

test("each kind of runner is recognised from its answers and shown with what it has loaded, preloaded models among it", async () => {
  await expect.poll(() => ollama.loaded.has("qwen3:8b")).toBe(true);
  await probed();
  const { json } = await gateway.request("GET", "/model/info");
  const shown = Object.values(json["data"] ?? {}).map((row) => [
    row["model_name"],
    row["model_info"]?.["runner"],
  ]);
  const runner = (
    kind: string,
    model: string,
    slots: number | null = null,
  ) => ({ kind, reachable: true, model, slots, slots_used: 0, queued: 0 });
  expect(shown).toEqual([
    ["cold", runner("ollama", "unloaded")],
    ["preloaded", runner("ollama", "loaded")],
    ["backed", runner("ollama", "unloaded")],
    ["jit", runner("lm_studio", "unloaded")],
    ["line", runner("llama_cpp", "loaded", 1)],
    ["hasty", runner("llama_cpp", "loaded", 1)],
    ["free", runner("vllm", "loaded")],
    ["away", expect.objectContaining({ kind: null, reachable: false })],
    ["either", runner("llama_cpp", "loaded", 1)],
    ["either", runner("vllm", "loaded")],
  ]);
  expect(ollama.requests).toEqual([
    { path: "/api/generate", body: { model: "qwen3:8b", stream: false } },
  ]);
});

test("a stream that waits for a cold model receives comments, then the answer; keep_alive reaches Ollama", async () => {
  ollama.holdsLoads = true;
  const stream = await openStream("/v1/chat/completions", { model: "cold" });
  expect([stream.status, stream.first]).toEqual([
    200,
    ": loading model cold\n\n",
  ]);
  ollama.continueAll();
  const rest = await stream.rest();
  expect(rest).toContain('"content":"ollama"');
  expect(rest.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(ollama.requests).toMatchObject([
    {
      path: "/api/generate",
      body: { model: "llama3.2", stream: false, keep_alive: "24h" },
    },
    { path: "/v1/chat/completions" },
  ]);
});

test("a load that fails after comments falls back to the next deployment, unseen by the client", async () => {
  const since = Date.now();
  ollama.holdsLoads = true;
  ollama.loadError = "model requires more system memory";
  const stream = await openStream("/v1/chat/completions", { model: "backed" });
  expect(stream.first).toBe(": loading model backed\n\n");
  ollama.continueAll();
  const rest = await stream.rest();
  expect(rest).toContain('"content":"vllm"');
  expect(rest).not.toContain("error");
  expect(await rowsSince(since)).toEqual([{ status: "success", spend: COST }]);
});

test("a load that fails after comments, without another deployment, ends the stream with an error in the client's dialect", async () => {
  ollama.loadError = "model requires more system memory";
  for (const [path, ending] of [
    [
      "/v1/chat/completions",
      /"error":.*more system memory.*\n\ndata: \[DONE\]\n\n$/,
    ],
    ["/v1/messages", /^event: error\ndata: .*more system memory.*\n\n$/],
  ] as const) {
    ollama.holdsLoads = true;
    const stream = await openStream(path, { model: "cold", num_retries: 0 });
    expect(stream.first).toBe(": loading model cold\n\n");
    ollama.continueAll();
    expect(await stream.rest()).toMatch(ending);
  }
});

test("a whole answer waits for a cold model, too: a failed load is an ordinary error, and nothing is charged", async () => {
  const since = Date.now();
  ollama.loadError = "model requires more system memory";
  const failed = await chat("cold", { num_retries: 0 });
  expect([failed.status, failed.json["error"]?.["message"]]).toEqual([
    500,
    expect.stringContaining(
      "could not load llama3.2: model requires more system memory",
    ),
  ]);
  ollama.loadError = null;
  expect(contentOf(await chat("cold"))).toBe("ollama");
  expect(await rowsSince(since)).toMatchObject([
    { status: "failure", spend: 0 },
    { status: "success" },
  ]);
});

test("a model that its first call loads has cold_load_timeout, a loaded one the usual time", async () => {
  lmStudio.holdsLoads = true;
  const cold = chat("jit");
  await expect.poll(() => lmStudio.held).toBe(1);
  await sleep(400);
  lmStudio.continueAll();
  expect(contentOf(await cold)).toBe("lm_studio");
  await probed();
  lmStudio.holdsCalls = true;
  const late = await chat("jit");
  expect([late.status, late.json["error"]?.["message"]]).toEqual([
    408,
    expect.stringContaining("did not answer in time"),
  ]);
});

test("a call to llama.cpp waits while the model is being loaded, also when that began after the latest probe", async () => {
  llamaCpp.isLoading = true;
  const waiting = chat("line");
  await expect
    .poll(() => llamaCpp.requests.map(({ path }) => path))
    .toEqual(["/v1/chat/completions"]);
  llamaCpp.isLoading = false;
  expect(contentOf(await waiting)).toBe("llama_cpp");
  llamaCpp.isLoading = true;
  await probed();
  const next = chat("line");
  llamaCpp.isLoading = false;
  expect(contentOf(await next)).toBe("llama_cpp");
  expect(llamaCpp.requests).toHaveLength(3);
});

test("calls above the runner's slots wait: interactive keys before batch keys, one at a time, and say for how long", async () => {
  const batchKey = await gateway.createKey({ metadata: { priority: "batch" } });
  const [running] = await runningAt(llamaCpp, "line");
  const ended: string[] = [];
  const calls: Promise<TestAnswer>[] = [];
  const queue = async (name: string, fields: object, key = MASTER_KEY) => {
    calls.push(
      chat("line", fields, key).then((answer) => {
        ended.push(name);
        return answer;
      }),
    );
    await expect.poll(() => queued("line")).toBe(calls.length);
  };
  await queue("batch", {}, batchKey);
  await queue("lowered", { priority: "batch" });
  await queue("interactive", {});
  const metrics = await gateway.request("GET", "/metrics");
  expect(metrics.text).toContain('hearth_queued_calls{alias="line"} 3');
  const full = await chat("line");
  expect([full.status, full.json["error"]]).toMatchObject([
    429,
    { type: "queue_full" },
  ]);
  expect(full.json["error"]?.["message"]).toMatch(
    /^All slots of line are in use and its queue is full\. Try again in \d+ s, or use another model\.$/,
  );
  expect(Number(full.headers.get("retry-after"))).toBeGreaterThan(0);
  for (let turns = 0; turns < 4; turns++) {
    await expect.poll(() => llamaCpp.held).toBe(1);
    llamaCpp.continueOne();
    await expect.poll(() => ended.length).toBe(turns);
  }
  const answers = await Promise.all([running, ...calls]);
  expect(answers.map((answer) => answer?.status)).toEqual([200, 200, 200, 200]);
  expect(ended).toEqual(["interactive", "batch", "lowered"]);
  expect(llamaCpp.mostRunning).toBe(1);
  expect(answers[0]?.headers.get("x-hearth-queue-ms")).toBe("0");
  expect(Number(answers[1]?.headers.get("x-hearth-queue-ms"))).toBeGreaterThan(
    0,
  );
  const bad = await chat("line", { priority: "urgent" });
  expect([bad.status, bad.json["error"]?.["param"]]).toEqual([400, "priority"]);
});

test("while llama.cpp loads its model again, calls wait for the slots that it had", async () => {
  llamaCpp.holdsCalls = true;
  llamaCpp.isLoading = true;
  await probed();
  const calls = [chat("line"), chat("line"), chat("line")];
  await expect
    .poll(async () => (await gateway.request("GET", "/metrics")).text)
    .toContain('hearth_queued_calls{alias="line"} 2');
  llamaCpp.isLoading = false;
  await expect.poll(() => llamaCpp.held).toBe(1);
  llamaCpp.continueAll();
  for (const call of calls) {
    expect((await call).status).toBe(200);
  }
});

test("a runner stops when the client of its call has left, and its slot is free at once", async () => {
  llamaCpp.holdsCalls = true;
  const leave = leavingClient("line");
  await expect.poll(() => llamaCpp.held).toBe(1);
  const next = chat("line");
  await expect.poll(() => queued("line")).toBe(1);
  await leave();
  await expect.poll(() => llamaCpp.held).toBe(2);
  expect(llamaCpp.running).toBe(1);
  llamaCpp.continueAll();
  expect((await next).status).toBe(200);
});

test("a call leaves the queue when its client does, its time is over or it waits too long", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const leave = leavingClient("line");
  await expect.poll(() => queued("line")).toBe(1);
  await leave();
  await expect.poll(() => queued("line")).toBe(0);
  const outOfTime = await chat("line", { timeout: 0.05 });
  expect([outOfTime.status, outOfTime.json["error"]?.["type"]]).toEqual([
    408,
    "queue_timeout",
  ]);
  const late = await chat("hasty");
  expect([late.status, late.json["error"]?.["message"]]).toEqual([
    503,
    expect.stringMatching(
      /^hasty had no free slot within 0\.05 s\. Try again in \d+ s, or use another model\.$/,
    ),
  ]);
  expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(late.headers.get("x-hearth-queue-ms")).toBe("50");
  llamaCpp.continueAll();
  expect((await running)?.status).toBe(200);
  expect(llamaCpp.requests).toHaveLength(1);
});

test("a call that waits reserves no budget and is in no journal; afterwards it costs what it cost", async () => {
  const since = Date.now();
  const [running] = await runningAt(llamaCpp, "line");
  const { journal, limits } = gateway.running.gateway;
  expect(journal.state().openIntents).toBe(1);
  // Each call is expected to cost more than the whole budget.
  const key = await gateway.createKey({ max_budget: 2 * COST });
  const waiting = chat("line", { max_tokens: 1_000 }, key);
  await expect.poll(() => queued("line")).toBe(1);
  expect(journal.state().openIntents).toBe(1);
  const meanwhile = await chat("free", { max_tokens: 1_000 }, key);
  expect(meanwhile.status).toBe(200);
  llamaCpp.continueAll();
  expect((await waiting).status).toBe(200);
  await running;
  // The budget is used up: the next call is rejected although a slot is free.
  expect((await chat("line", {}, key)).json["error"]?.["type"]).toBe(
    "budget_exceeded",
  );
  expect(await rowsSince(since)).toEqual([
    { status: "success", spend: COST },
    { status: "success", spend: COST },
    { status: "success", spend: COST },
  ]);
  const info = await gateway.request("GET", "/key/info", undefined, key);
  expect(info.json["info"]?.["spend"]).toBeCloseTo(2 * COST, 9);
  expect(limits.counts().expiredLeases).toBe(0);
});

test("a call that waits keeps its request and tokens of the minute, which are corrected to what it used", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const key = await gateway.createKey({
    max_budget: 100 * COST,
    rpm_limit: 10,
    tpm_limit: 5_000,
    max_parallel_requests: 1,
  });
  const waiting = chat("line", { max_tokens: 1_000 }, key);
  await expect.poll(() => queued("line")).toBe(1);
  const meanwhile = await chat("free", {}, key);
  expect(meanwhile.json["error"]?.["type"]).toBe("rate_limit_exceeded");
  llamaCpp.continueAll();
  await running;
  expect((await waiting).status).toBe(200);
  const { headers } = await chat("free", { max_tokens: 1 }, key);
  const left = (name: string) =>
    Number(headers.get(`x-ratelimit-remaining-${name}`));
  expect(left("requests")).toBe(8);
  expect(left("tokens")).toBeGreaterThan(4_900);
});

test("a call that waits at a fallback reserves what that costs only when its turn comes", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const key = await gateway.createKey({ max_budget: 3 * COST });
  // A free alias, whose runner is gone.
  const waiting = chat("away", { max_tokens: 1_000 }, key);
  await expect.poll(() => queued("line")).toBe(1);
  expect((await chat("free", {}, key)).status).toBe(200);
  llamaCpp.continueOne();
  await running;
  await expect.poll(() => llamaCpp.held).toBe(1);
  const held = await chat("free", {}, key);
  expect(held.json["error"]?.["type"]).toBe("budget_held");
  llamaCpp.continueAll();
  expect((await waiting).status).toBe(200);
});

test("a call whose budget is used up while it waits is rejected, and its slot goes to the next", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const key = await gateway.createKey({ max_budget: COST });
  const waiting = chat("line", {}, key);
  await expect.poll(() => queued("line")).toBe(1);
  expect((await chat("free", {}, key)).status).toBe(200);
  llamaCpp.continueAll();
  expect((await waiting).json["error"]?.["type"]).toBe("budget_exceeded");
  expect((await running)?.status).toBe(200);
  expect((await chat("line")).status).toBe(200);
  expect(llamaCpp.requests).toHaveLength(2);
});

test("a call that waits is served once its runner reports another slot, without another call", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const waiting = chat("line");
  await expect.poll(() => queued("line")).toBe(1);
  llamaCpp.slots = 2;
  await probed();
  await expect.poll(() => llamaCpp.held, { timeout: 10_000 }).toBe(2);
  llamaCpp.continueAll();
  expect([(await running)?.status, (await waiting).status]).toEqual([200, 200]);
  llamaCpp.slots = 1;
});

test("a call goes to another deployment of the alias that has a free slot", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  expect(contentOf(await chat("either"))).toBe("vllm");
  llamaCpp.continueAll();
  expect((await running)?.status).toBe(200);
});

test("a runner that is gone is left by its next probe, named to its callers, and used again when it is back", async () => {
  await llamaCpp.stop();
  await probed();
  for (let calls = 0; calls < 5; calls++) {
    const answer = await chat("either");
    expect([
      contentOf(answer),
      answer.headers.get("x-hearth-attempted-retries"),
    ]).toEqual(["vllm", "0"]);
  }
  const alone = await chat("line");
  expect([alone.status, alone.json["error"]?.["message"]]).toEqual([
    503,
    expect.stringMatching(
      /^No deployment of line is available \(.*cannot be reached \(ECONNREFUSED\).*\)\. Try again in 2 s\.$/,
    ),
  ]);
  const metrics = await gateway.request("GET", "/metrics");
  expect(metrics.text).toContain("hearth_gone_runners 2");
  await llamaCpp.start();
  await expect.poll(async () => (await chat("line")).status).toBe(200);
});

test("a gateway that stops answers the calls that wait", async () => {
  const [running] = await runningAt(llamaCpp, "line");
  const waiting = chat("line");
  await expect.poll(() => queued("line")).toBe(1);
  isStopped = true;
  await gateway.stop();
  const answers = await Promise.all([running, waiting]);
  expect(answers.map((answer) => answer?.status)).toEqual([503, 503]);
  expect(answers[1]?.json["error"]?.["message"]).toBe(
    "The gateway is stopping. Try again.",
  );
});
