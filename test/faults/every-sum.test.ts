import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../gateway/access/keys.ts";
import { query } from "../../gateway/database/pool.ts";
import { renderCsv } from "../../supervisor/reports/csv.ts";
import { choosePeriod } from "../../supervisor/reports/period.ts";
import {
  readSpendReport,
  type SpendReport,
} from "../../supervisor/reports/spend-report.ts";
import { createRandom, type Random } from "./random.ts";
import { readerUrl, throwAwayDatabase } from "../servers/database.ts";
import {
  startTestGateway,
  type Json,
  type TestAnswer,
  type TestGateway,
} from "../servers/gateway.ts";
import { waitFor } from "../wait-for.ts";
import type { MockInstructions } from "../servers/mock-instructions.ts";
import { startMockProvider, type MockProvider } from "../servers/provider.ts";

/** Calls of every kind, chosen at random: all routes and reports have the same sums of them. */

const SEED = 20_261_129;
const CALLS = 150;
const AT_ONCE = 10;

interface Key {
  readonly secret: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A row of the ledger. */
interface Row {
  readonly request_id: string;
  readonly api_key: string;
  readonly user_id: string | null;
  readonly user_pays: boolean;
  readonly team_id: string | null;
  readonly organization_id: string | null;
  readonly end_user: string | null;
  readonly tags: readonly string[] | null;
  readonly model_group: string;
  readonly provider: string | null;
  readonly spend: number;
  readonly saved: number;
  readonly status: string;
  readonly cache_hit: boolean;
}

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let good: MockProvider;
let bad: MockProvider;
let gateway: TestGateway;
let keys: readonly Key[];
let answers: readonly TestAnswer[];
let rows: readonly Row[];
let report: SpendReport;

const PRICES = [
  "input_cost_per_token: 1.0e-6",
  "output_cost_per_token: 7.0e-6",
  "cache_read_input_token_cost: 1.0e-7",
  "cache_creation_input_token_cost: 1.25e-6",
  "input_cost_per_audio_token: 1.0e-5",
  "output_cost_per_audio_token: 3.0e-5",
  "output_cost_per_reasoning_token: 9.0e-6",
  "input_cost_per_token_flex: 5.0e-7",
  "output_cost_per_token_flex: 3.5e-6",
].join(", ");

function yaml(goodUrl: string, badUrl: string): string {
  const alias = (name: string, url: string, params: string) => `
  - model_name: ${name}
    provider_params: { model: openai/${name}, api_base: "${url}", api_key: x, ${params} }`;
  return `model_list:${[
    alias("chat", goodUrl, PRICES),
    alias("two", goodUrl, PRICES),
    alias("two", badUrl, PRICES),
    alias("falls", badUrl, PRICES),
    alias("painter", goodUrl, "output_cost_per_image: 0.04"),
    alias("texts", goodUrl, "input_cost_per_token: 3.0e-7"),
    alias("unpriced", goodUrl, "weight: 1"),
  ].join("")}
router_settings: { fallbacks: [{ falls: [chat] }], allowed_fails: 100000 }
proxy_settings: { cache: true, cache_params: { type: memory } }
`;
}

beforeAll(async () => {
  database = await throwAwayDatabase();
  good = await startMockProvider();
  bad = await startMockProvider({ alwaysStatus: 500 });
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: good.url,
    yaml: yaml(good.url, bad.url),
  });
  keys = await createKeys();
  const random = createRandom(SEED);
  const calls = Array.from({ length: CALLS }, () => chooseCall(random));
  const all: TestAnswer[] = [];
  for (let at = 0; at < CALLS; at += AT_ONCE) {
    const sent = calls.slice(at, at + AT_ONCE).map(send);
    all.push(...(await Promise.all(sent)).filter((answer) => answer !== null));
  }
  answers = all;
  const { ledger, pool } = gateway.running.gateway;
  await waitFor("the row of each call", async () => {
    await ledger.flush();
    rows = await query<Row & Record<string, unknown>>(
      pool,
      "SELECT * FROM spend_log",
    );
    return rows.length === CALLS;
  });
  const today = new Date().toISOString().slice(0, 10);
  report = await readSpendReport(readerUrl(database.url, "supervisor"), {
    period: choosePeriod(
      { unit: "month", complete: false, since: "2d" },
      today,
    ),
    timeZone: "UTC",
    today,
    now: Date.now(),
    signal: new AbortController().signal,
  });
}, 120_000);

afterAll(async () => {
  await gateway?.stop();
  await Promise.all([good?.close(), bad?.close(), database?.drop()]);
});

async function createKeys(): Promise<readonly Key[]> {
  const { ask } = gateway;
  await ask("POST", "/organization/new", {
    organization_id: "org",
    organization_alias: "Org",
  });
  await ask("POST", "/team/new", {
    team_id: "crew",
    team_alias: "Crew",
    organization_id: "org",
  });
  await ask("POST", "/team/new", { team_id: "band", team_alias: "Band" });
  const made = [
    { user_id: "ann" },
    { user_id: "bob", budget_duration: "1mo", max_budget: 1_000 },
    { team_id: "crew" },
    { team_id: "band", user_id: "ann" },
    { metadata: { tags: ["red"] } },
  ].map(async (fields) => ({
    secret: await gateway.createKey(fields),
    fields,
  }));
  return Promise.all(made);
}

interface ChosenCall {
  readonly path: string;
  readonly body: object;
  readonly key: Key;
  /** The client disconnects after the first part of the answer. */
  readonly leaves?: boolean;
}

/** null: the client has left. */
async function send({
  path,
  body,
  key: { secret },
  leaves = false,
}: ChosenCall): Promise<TestAnswer | null> {
  if (!leaves) {
    return gateway.request("POST", path, body, secret);
  }
  const answer = await fetch(gateway.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });
  const reader = answer.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  return null;
}

function chooseCall(random: Random): ChosenCall {
  const key = random.pick(keys);
  const payers = {
    ...(random.chance(0.3) ? { user: random.pick(["shop", "café"]) } : {}),
    ...(random.chance(0.3)
      ? { metadata: { tags: random.pick([["blue"], ["blue", "green"]]) } }
      : {}),
  };
  const kind = random.integer(1, 12);
  if (kind === 1) {
    const input = [`text ${random.integer(1, 4)}`];
    const body = { model: "texts", input, ...payers };
    return { path: "/v1/embeddings", body, key };
  }
  if (kind === 2) {
    const n = random.integer(1, 3);
    const body = { model: "painter", prompt: "a house", n, ...payers };
    return { path: "/v1/images/generations", body, key };
  }
  const leaves = kind === 3;
  const stream = leaves || random.chance(0.4);
  const instructions = leaves ? { chunkDelayMs: 20 } : chooseAnswer(random);
  // Some prompts are repeated, and answered from the cache.
  const prompt =
    kind === 4
      ? `hello ${random.integer(1, 2)}`
      : `${random.next()} [mock]${JSON.stringify(instructions)}`;
  const model = random.pick(["chat", "chat", "two", "falls", "unpriced"]);
  const body = {
    model,
    messages: [{ role: "user", content: prompt }],
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    ...(random.chance(0.2) ? { service_tier: "flex" } : {}),
    ...payers,
  };
  return { path: "/v1/chat/completions", body, key, leaves };
}

function chooseAnswer(random: Random): MockInstructions {
  if (random.chance(0.1)) {
    return { status: random.pick([400, 500, 503]) };
  }
  if (random.chance(0.1)) {
    return { cutAfter: random.integer(1, 3), chunkDelayMs: 20 };
  }
  const input = random.integer(1, 300_000);
  const output = random.integer(0, 9_000);
  const part = (of: number) => random.integer(0, Math.floor(of / 3));
  return {
    usage: random.chance(0.1)
      ? null
      : {
          prompt_tokens: input,
          completion_tokens: output,
          total_tokens: input + output,
          prompt_tokens_details: {
            cached_tokens: part(input),
            audio_tokens: part(input),
          },
          completion_tokens_details: {
            reasoning_tokens: part(output),
            audio_tokens: part(output),
          },
        },
  };
}

/** What rows sum up to. */
interface Sum {
  readonly spend: number;
  readonly requests: number;
}

function sumOf(of: (row: Row) => boolean = () => true): Sum {
  const own = rows.filter(of);
  return {
    spend: own.reduce((sum, { spend }) => sum + spend, 0),
    requests: own.length,
  };
}

/** The sums of all values of a field. */
function sumsBy(
  valueOf: (row: Row) => string | null,
): ReadonlyMap<string, Sum> {
  const values = new Set(rows.map(valueOf));
  return new Map(
    [...values]
      .filter((value) => value !== null)
      .map((value) => [value, sumOf((row) => valueOf(row) === value)]),
  );
}

function expectSpend(spend: unknown, expected: number, what: string): void {
  expect(Number(spend), what).toBeCloseTo(expected, 9);
}

/** That a list has the sums of all values, and no others. */
function expectList(
  list: unknown,
  sums: ReadonlyMap<string, Sum>,
  [id, spend, requests]: readonly [string, string, string?],
): void {
  const found = (list as readonly Json[]).filter((row) => row[id] !== null);
  expect(found.map((row) => String(row[id])).toSorted()).toEqual(
    [...sums.keys()].toSorted(),
  );
  for (const row of found) {
    const sum = sums.get(String(row[id]));
    expectSpend(row[spend], sum?.spend ?? NaN, `${String(row[id])}: ${spend}`);
    if (requests !== undefined) {
      expect(row[requests]).toBe(sum?.requests);
    }
  }
}

const get = (path: string, key?: string) =>
  gateway.ask("GET", path, undefined, key);

test("the calls were of every kind, and the headers of answers have their costs", () => {
  const ofStatus = (status: string) => sumOf((row) => row.status === status);
  expect(ofStatus("success").requests).toBeGreaterThan(CALLS / 2);
  expect(ofStatus("failure").requests).toBeGreaterThan(0);
  expect(sumOf((row) => row.cache_hit).requests).toBeGreaterThan(0);
  expect(sumOf((row) => row.spend > 0).requests).toBeGreaterThan(CALLS / 3);
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  let compared = 0;
  for (const { status, headers } of answers) {
    const cost = headers.get("x-hearth-cost");
    if (status === 200 && cost !== null) {
      const id = String(headers.get("x-hearth-call-id"));
      expectSpend(cost, byId.get(id)?.spend ?? NaN, id);
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(CALLS / 4);
});

test("no total differs from the sum of its rows", async () => {
  expect(
    await query(gateway.running.gateway.pool, "SELECT * FROM spend_check"),
  ).toEqual([]);
});

test("each payer's own page has the sum of its calls", async () => {
  for (const { secret } of keys) {
    const { spend } = sumOf((row) => row.api_key === hashKey(secret));
    const info = await get(`/key/info?key=${secret}`);
    expectSpend(info["info"]?.["spend"], spend, "/key/info");
    const usage = await get("/me/usage", secret);
    expectSpend(usage["total_spend"], spend, "/me/usage");
    const models = usage["by_model"] as unknown as readonly Json[];
    const sum = models.reduce((total, row) => total + Number(row["spend"]), 0);
    expectSpend(sum, spend, "/me/usage by model");
  }
  for (const user of ["ann", "bob"]) {
    const info = await get(`/user/info?user_id=${user}`);
    const { spend } = sumOf((row) => row.user_id === user && row.user_pays);
    expectSpend(info["user_info"]?.["spend"], spend, user);
  }
  for (const team of ["crew", "band"]) {
    const info = await get(`/team/info?team_id=${team}`);
    const { spend } = sumOf((row) => row.team_id === team);
    expectSpend(info["team_info"]?.["spend"], spend, team);
  }
  const organization = await get("/organization/info?organization_id=org");
  const ofOrg = sumOf((row) => row.organization_id === "org");
  expectSpend(organization["spend"], ofOrg.spend, "org");
  for (const person of ["shop", "café"]) {
    const info = await get(
      `/customer/info?end_user_id=${encodeURIComponent(person)}`,
    );
    const { spend } = sumOf((row) => row.end_user === person);
    expectSpend(info["spend"], spend, person);
  }
});

test("the routes of the whole proxy have the same sums", async () => {
  const { spend, requests } = sumOf();
  expectSpend((await get("/global/spend"))["spend"], spend, "/global/spend");
  expectList(await get("/global/spend/logs"), sumsBy(dayOf), ["date", "spend"]);
  expectList(
    await get("/global/spend/keys?limit=100"),
    sumsBy((row) => row.api_key),
    ["api_key", "total_spend", "api_requests"],
  );
  const byModel = sumsBy((row) => row.model_group);
  expectList(await get("/global/spend/models?limit=100"), byModel, [
    "model",
    "total_spend",
    "api_requests",
  ]);
  expectList(
    await get("/global/spend/provider"),
    sumsBy((row) => row.provider),
    ["provider", "spend", "api_requests"],
  );
  const teams = await get("/global/spend/teams");
  expectList(
    teams["total_spend_per_team"],
    sumsBy((row) => row.team_id),
    ["team_id", "total_spend"],
  );
  const activity = await get("/global/activity");
  expect(activity["sum_api_requests"]).toBe(requests);
  const logs: Row[] = [];
  for (const page of [1, 2]) {
    const part = await get(`/spend/logs?page=${page}&page_size=100`);
    logs.push(...(part as unknown as readonly Row[]));
  }
  expect(logs.length).toBe(requests);
  const sum = logs.reduce((total, row) => total + row.spend, 0);
  expectSpend(sum, spend, "/spend/logs");
});

function dayOf(row: Row): string {
  const { ended_at: ended } = row as unknown as { ended_at: Date };
  return ended.toISOString().slice(0, 10);
}

test("tags have the sums of all calls that name them", async () => {
  const tagged = (tag: string) =>
    sumOf((row) => row.tags?.includes(tag) === true);
  const sums = new Map(
    ["red", "blue", "green"].map((tag) => [tag, tagged(tag)]),
  );
  expectList(await get("/spend/tags"), sums, [
    "individual_request_tag",
    "total_spend",
    "log_count",
  ]);
  const all = await get("/global/spend/tags");
  expectList(all["spend_per_tag"], sums, ["name", "spend", "log_count"]);
  for (const [tag, sum] of sums) {
    await expectActivity(`/tag/daily/activity?tags=${tag}`, sum);
  }
});

/** That the daily activity has this sum, in each of its breakdowns by what every call has. */
async function expectActivity(path: string, sum: Sum): Promise<void> {
  const dates = [...new Set(rows.map(dayOf))].toSorted();
  const range = `start_date=${dates[0]}&end_date=${dates.at(-1)}`;
  for (const kind of ["activity", "activity/aggregated"]) {
    const asked = path.replace("activity", kind);
    const { results } = await get(
      `${asked}${asked.includes("?") ? "&" : "?"}${range}`,
    );
    const days = results as unknown as readonly Json[];
    const total = (of: (day: Json) => Json | undefined, field: string) =>
      days.reduce((all, day) => all + Number(of(day)?.[field] ?? 0), 0);
    const metrics = (day: Json) => day["metrics"];
    expectSpend(total(metrics, "spend"), sum.spend, asked);
    expect(total(metrics, "api_requests"), asked).toBe(sum.requests);
    for (const part of ["model_groups", "api_keys"]) {
      const parts = days.flatMap((day) =>
        Object.values(day["breakdown"]?.[part] ?? {}),
      );
      const spend = parts.reduce(
        (all, one) => all + Number(one["metrics"]?.["spend"]),
        0,
      );
      expectSpend(spend, sum.spend, `${asked}: ${part}`);
    }
  }
}

test("the daily activity of all users has the sums of all calls, also of keys without a user", async () => {
  expect(sumOf((row) => row.user_id === null).requests).toBeGreaterThan(0);
  await expectActivity("/user/daily/activity", sumOf());
});

test("daily activity has the sums of each payer", async () => {
  for (const user of ["ann", "bob"]) {
    const sum = sumOf((row) => row.user_id === user);
    await expectActivity(`/user/daily/activity?user_id=${user}`, sum);
  }
  for (const team of ["crew", "band"]) {
    const sum = sumOf((row) => row.team_id === team);
    await expectActivity(`/team/daily/activity?team_ids=${team}`, sum);
  }
  await expectActivity(
    "/organization/daily/activity?organization_ids=org",
    sumOf((row) => row.organization_id === "org"),
  );
  await expectActivity(
    "/customer/daily/activity?end_user_ids=shop",
    sumOf((row) => row.end_user === "shop"),
  );
});

test("the supervisor's report has the same sums in each of its tables, and as CSV", () => {
  const { spend, requests } = sumOf();
  expectSpend(report.totals.spend, spend, "totals");
  expect(report.totals).toMatchObject({
    requests,
    failed: sumOf((row) => row.status === "failure").requests,
    cacheHits: sumOf((row) => row.cache_hit).requests,
  });
  const saved = rows.reduce((sum, row) => sum + row.saved, 0);
  expectSpend(report.totals.saved, saved, "saved");
  expectList(
    report.keys,
    sumsBy((row) => row.api_key),
    ["id", "spend", "requests"],
  );
  const ids = (list: readonly { readonly id: string }[]) =>
    list.filter(({ id }) => id !== "");
  expectList(
    ids(report.teams),
    sumsBy((row) => row.team_id),
    ["id", "spend", "requests"],
  );
  expectList(
    report.models,
    sumsBy((row) => row.model_group),
    ["id", "spend", "requests"],
  );
  const lines = renderCsv(report).split("\r\n");
  const cells = lines.map((line) => line.split(","));
  const inCsv = (table: string) =>
    cells
      .filter(([name]) => name === table)
      .reduce((sum, [, , , own]) => sum + Number(own), 0);
  for (const table of ["user", "key", "team", "model", "provider"]) {
    expectSpend(inCsv(table), spend, `${table} in CSV`);
  }
});
