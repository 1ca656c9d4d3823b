import { afterAll, beforeAll, expect, test } from "vitest";
import { query } from "../../gateway/database/pool.ts";
import { waitFor } from "../wait-for.ts";
import {
  startTestbed,
  type Json,
  type TestAnswer,
  type Testbed,
} from "../servers/gateway.ts";
import { createRandom } from "./random.ts";

/**
 * Keys that are renewed, moved, deleted or have their spend set, teams that are renamed, moved or created again, and users that are
 * deleted, between calls at random: every report has the same sums of the calls.
 */

const SEED = 20_261_130;
const STEPS = 250;
const CALLS_OF_STEPS = 0.7;

/** A call in the ledger, under the names that its payers had. */
interface Row {
  readonly api_key: string;
  readonly user_id: string | null;
  readonly team_id: string | null;
  readonly organization_id: string | null;
  readonly end_user: string | null;
  readonly tags: readonly string[] | null;
  readonly model_group: string;
  readonly spend: number;
  readonly day: string;
}

const random = createRandom(SEED);
const TEAMS = ["crew", "band", "lab"];
const USERS = ["ann", "bob", "cleo"];
const ORGANIZATIONS = ["north", "south"];
const keys: string[] = [];
let testbed: Testbed;
let rows: readonly Row[];
/** The days of the calls, as reports take them. */
let days: string;

beforeAll(async () => {
  testbed = await startTestbed();
  for (const organization_id of ORGANIZATIONS) {
    await change("/organization/new", { organization_id });
  }
  for (const team_id of TEAMS) {
    await change("/team/new", { team_id, organization_id: "north" });
  }
  for (const user_id of USERS) {
    await change("/user/new", { user_id, auto_create_key: false });
  }
  let calls = 0;
  for (let step = 0; step < STEPS; step++) {
    while (keys.length < 4) {
      await createKey();
    }
    if (random.chance(CALLS_OF_STEPS)) {
      calls += await call();
    } else {
      await random.pick(CHANGES)();
    }
  }
  const { ledger, pool } = testbed.gateway.running.gateway;
  await waitFor("the row of each call", async () => {
    await ledger.flush();
    rows = await query<Row & Record<string, unknown>>(
      pool,
      `SELECT coalesce(r.token, l.api_key) AS api_key, user_id, team_id, organization_id, end_user, tags, model_group, spend, day::text
         FROM spend_log l LEFT JOIN rotated_keys r ON r.old_token = l.api_key WHERE payer IS NULL`,
    );
    return rows.length === calls;
  });
  const all = rows.map(({ day }) => day).toSorted();
  days = `start_date=${all[0]}&end_date=${all.at(-1)}`;
}, 120_000);

afterAll(() => testbed?.stop());

/** Paths of changes that were made, without names. */
const made = new Set<string>();

async function change(path: string, body: object): Promise<TestAnswer> {
  const answer = await testbed.gateway.request("POST", path, body);
  if (answer.status === 200) {
    made.add(path.replace(/sk-[^/]+/, "KEY"));
  }
  return answer;
}

async function createKey(): Promise<void> {
  const { json } = await change("/key/generate", {
    ...(random.chance(0.5) ? { team_id: random.pick(TEAMS) } : {}),
    ...(random.chance(0.6) ? { user_id: random.pick(USERS) } : {}),
    ...(random.chance(0.3) ? { max_budget: 1e3, budget_duration: "1d" } : {}),
  });
  keys.push(String(json["key"]));
}

/** Answers how many rows the ledger gets: none of a key that was deleted with its user or team. */
async function call(): Promise<number> {
  const { chat } = testbed.gateway;
  const usage = {
    prompt_tokens: random.integer(1, 1_000_000),
    completion_tokens: random.integer(0, 100_000),
  };
  const instructions = random.chance(0.2) ? { status: 400 } : { usage };
  const key = random.pick(keys);
  const prompt = `${random.next()} [mock]${JSON.stringify(instructions)}`;
  const { status } = await chat(key, prompt, {
    ...(random.chance(0.3) ? { user: random.pick(["shop", "fair"]) } : {}),
    ...(random.chance(0.3) ? { metadata: { tags: ["red", "blue"] } } : {}),
  });
  if (status === 401) {
    keys.splice(keys.indexOf(key), 1);
  }
  return status === 401 ? 0 : 1;
}

const CHANGES: readonly (() => Promise<unknown>)[] = [
  async function renew() {
    const key = random.pick(keys);
    const { json } = await change("/key/regenerate", { key });
    keys.splice(keys.indexOf(key), 1);
    if (json["key"] !== undefined) {
      keys.push(String(json["key"]));
    }
  },
  async function remove() {
    const [key] = keys.splice(random.integer(0, keys.length - 1), 1);
    await change("/key/delete", { keys: [key] });
  },
  () =>
    change("/key/update", {
      key: random.pick(keys),
      team_id: random.pick([...TEAMS, null]),
    }),
  () =>
    change("/key/update", {
      key: random.pick(keys),
      user_id: random.pick(USERS),
    }),
  () =>
    change("/key/update", { key: random.pick(keys), spend: random.next() * 9 }),
  () => change(`/key/${random.pick(keys)}/reset_spend`, { reset_to: 0 }),
  () =>
    change("/team/update", {
      team_id: random.pick(TEAMS),
      team_alias: `Renamed ${random.integer(1, 1_000)}`,
    }),
  () =>
    change("/team/update", {
      team_id: random.pick(TEAMS),
      organization_id: random.pick(ORGANIZATIONS),
    }),
  async function createTeamAgain() {
    const team_id = random.pick(TEAMS);
    await change("/team/delete", { team_ids: [team_id] });
    await change("/team/new", { team_id, organization_id: "south" });
  },
  async function createUserAgain() {
    const user_id = random.pick(USERS);
    await change("/user/delete", { user_ids: [user_id] });
    await change("/user/new", { user_id, auto_create_key: false });
  },
];

type Column = Exclude<keyof Row, "spend" | "tags">;

/** What the calls cost, by the names in a column, to a nano-dollar. */
function spendBy(column: Column): Readonly<Record<string, number>> {
  return sums(rows.map((row) => [row[column], row.spend]));
}

function sums(
  parts: readonly (readonly [unknown, unknown])[],
): Readonly<Record<string, number>> {
  const found = new Map<string, number>();
  for (const [name, spend] of parts) {
    if (name !== null) {
      found.set(String(name), (found.get(String(name)) ?? 0) + Number(spend));
    }
  }
  return Object.fromEntries(
    [...found].map(([name, spend]) => [name, Number(spend.toFixed(9))]),
  );
}

const list = async (path: string) =>
  (await testbed.gateway.ask("GET", path)) as unknown as readonly Json[];

const total = () => sums(rows.map(({ spend }) => ["all", spend]))["all"] ?? NaN;

test("no total differs from the sum of its rows", async () => {
  const { pool } = testbed.gateway.running.gateway;
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
  expect(new Set(rows.map(({ api_key: key }) => key)).size).toBeGreaterThan(9);
  expect([...made].toSorted()).toEqual([
    "/key/KEY/reset_spend",
    "/key/delete",
    "/key/generate",
    "/key/regenerate",
    "/key/update",
    "/organization/new",
    "/team/delete",
    "/team/new",
    "/team/update",
    "/user/delete",
    "/user/new",
  ]);
});

test.each<readonly [string, string, Column]>([
  ["team", "teams", "team_id"],
  ["customer", "customers", "end_user"],
  ["user", "users", "user_id"],
  ["api_key", "api_keys", "api_key"],
  ["organization", "organizations", "organization_id"],
  ["model", "models", "model_group"],
])("the report by %s has the sums of its calls", async (group, of, column) => {
  const report = await list(
    `/global/spend/report?group_by=${group}&limit=1000&${days}`,
  );
  const entries = report.flatMap((day) => day[of] as unknown as Json[]);
  expect(sums(entries.map((one) => [one["id"], one["total_spend"]]))).toEqual(
    spendBy(column),
  );
});

test("the lists of keys, teams, days and models have the same sums", async () => {
  const byKey = await list(`/global/spend/keys?limit=1000&${days}`);
  expect(
    sums(byKey.map((one) => [one["api_key"], one["total_spend"]])),
  ).toEqual(spendBy("api_key"));
  const teams = (
    await testbed.gateway.ask("GET", `/global/spend/teams?${days}`)
  )["total_spend_per_team"] as unknown as readonly Json[];
  expect(
    sums(teams.map((one) => [one["team_id"], one["total_spend"]])),
  ).toEqual(spendBy("team_id"));
  const byDay = await list(`/global/spend/logs?${days}`);
  expect(sums(byDay.map((one) => [one["date"], one["spend"]]))).toEqual(
    spendBy("day"),
  );
  const summaries = await list(`/spend/logs?summarize=true&${days}`);
  const summed = (of: string) =>
    sums(summaries.flatMap((day) => Object.entries(day[of] ?? {})));
  expect(summed("models")).toEqual(spendBy("model_group"));
  const { "": _, ...users } = summed("users");
  expect(users).toEqual(spendBy("user_id"));
  expect(
    (await testbed.gateway.ask("GET", "/global/spend"))["total_spend"],
  ).toBeCloseTo(total(), 9);
});

test.each<readonly [string, readonly string[], Column]>([
  ["/user/daily/activity?user_id=", USERS, "user_id"],
  ["/team/daily/activity?team_ids=", TEAMS, "team_id"],
  [
    "/organization/daily/activity?organization_ids=",
    ORGANIZATIONS,
    "organization_id",
  ],
  ["/customer/daily/activity?end_user_ids=", ["shop", "fair"], "end_user"],
])("%s has the sums of its calls, also by key", async (path, names, column) => {
  for (const name of names) {
    const { results } = await testbed.gateway.ask(
      "GET",
      `${path}${name}&${days}`,
    );
    const own = rows.filter((row) => row[column] === name);
    const metrics = (results as unknown as readonly Json[]).map(
      (day) => ["all", day["metrics"]?.["spend"]] as const,
    );
    expect(sums(metrics)).toEqual(sums(own.map(({ spend }) => ["all", spend])));
    const byKey = (results as unknown as readonly Json[]).flatMap((day) =>
      Object.entries(day["breakdown"]?.["api_keys"] ?? {}).map(
        ([key, part]) => [key, part["metrics"]?.["spend"]] as const,
      ),
    );
    expect(sums(byKey)).toEqual(
      sums(own.map(({ api_key: key, spend }) => [key, spend])),
    );
  }
});

test("tags have the sums of their calls", async () => {
  const tags = await list(`/spend/tags?limit=1000&${days}`);
  expect(
    sums(
      tags.map((one) => [one["individual_request_tag"], one["total_spend"]]),
    ),
  ).toEqual(
    sums(
      rows.flatMap(({ tags, spend }) =>
        (tags ?? []).map((tag) => [tag, spend]),
      ),
    ),
  );
});
