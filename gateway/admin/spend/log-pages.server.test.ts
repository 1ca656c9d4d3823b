import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import type { Json } from "../../../test/servers/gateway.ts";
import { hashKey } from "../../access/keys.ts";
import { query } from "../../database/pool.ts";

let fixture: AdminFixture;
let key: string;
let strangers: string;

const DAY = "2026-03-10";
const RANGE = `start_date=${DAY}&end_date=${DAY}`;

/** Seconds after noon of the day. */
function at(second: number): { started_at: string; ended_at: string } {
  const started = Date.parse(`${DAY}T12:00:00Z`) + second * 1_000;
  return {
    started_at: new Date(started).toISOString(),
    ended_at: new Date(started + 500).toISOString(),
  };
}

beforeAll(async () => {
  fixture = await startAdminFixture();
  key = await fixture.createKey({
    user_id: "alice",
    key_alias: "alice-laptop",
  });
  strangers = await fixture.createKey({ user_id: "bob", key_alias: "bobs" });
  const hers = { api_key: hashKey(key), user_id: "alice" };
  await fixture.spend(
    { ...hers, ...at(1), request_id: "a", spend: 0.3, session_id: "talk-1" },
    { ...hers, ...at(2), request_id: "b", spend: 0.1, model: "big" },
    {
      ...hers,
      ...at(3),
      request_id: "c",
      spend: 0,
      status: "failure",
      metadata: {
        error_information: { error_code: "429", error_message: "slow down" },
      },
    },
    { ...hers, ...at(4), request_id: "d", spend: 0, cache_hit: true },
    {
      api_key: hashKey(strangers),
      user_id: "bob",
      ...at(5),
      request_id: "e",
      end_user: "customer",
      completion_started_at: new Date(
        Date.parse(`${DAY}T12:00:05.200Z`),
      ).toISOString(),
    },
    { ...at(6), request_id: "f", call_type: "health_check", spend: 0.01 },
  );
});

afterAll(() => fixture?.stop());

async function pageOf(params: string, as?: string): Promise<Json> {
  return fixture.get(`/spend/logs/v2?${params}`, as);
}

function idsIn(page: Json): readonly string[] {
  const rows = page["data"] as unknown as readonly { request_id: string }[];
  return rows.map((row) => row.request_id);
}

test("rows are counted no further than asked", async () => {
  const count = async (limit: number) => {
    const page = await pageOf(`${RANGE}&page_size=2&count_up_to=${limit}`);
    return [page["total"], page["total_is_capped"], idsIn(page).length];
  };
  expect(await count(0)).toEqual([0, true, 2]);
  expect(await count(5)).toEqual([5, true, 2]);
  expect(await count(6)).toEqual([6, false, 2]);
});

test("a page has LiteLLM's shape, newest rows first and without prompts", async () => {
  const page = await pageOf(`${RANGE}&page_size=2`);
  expect(page).toMatchObject({
    total: 6,
    page: 1,
    page_size: 2,
    total_pages: 3,
    total_is_capped: false,
  });
  expect(idsIn(page)).toEqual(["f", "e"]);
  const [, row] = page["data"] as unknown as readonly object[];
  expect(row).toMatchObject({
    request_id: "e",
    user: "bob",
    end_user: "customer",
    spend: 0.25,
    request_duration_ms: 500,
    startTime: `${DAY}T12:00:05.000Z`,
    metadata: { user_api_key_alias: "bobs" },
  });
  expect(row).not.toHaveProperty("messages");
  expect(idsIn(await pageOf(`${RANGE}&page_size=2&page=3`))).toEqual([
    "b",
    "a",
  ]);
  const ui = await fixture.get(`/spend/logs/ui?${RANGE}&page_size=2`);
  expect(ui).toEqual(page);
});

test.each([
  ["user_id=alice", "dcba"],
  ["end_user=customer", "e"],
  ["session_id=talk", "a"],
  ["model=big", "b"],
  ["model_group=mock&user_id=alice", "dcba"],
  ["key_alias=laptop", "dcba"],
  ["status_filter=failure", "c"],
  ["cache_hit_filter=hit", "d"],
  ["cache_hit_filter=miss&user_id=alice", "cba"],
  ["min_spend=0.1&max_spend=0.25", "eb"],
  ["error_code=429", "c"],
  ["error_message=slow", "c"],
  ["exclude_internal_health_checks=true", "edcba"],
  ["request_id=b", "b"],
  ["sort_order=asc", "abcdef"],
  ["sort_by=spend&user_id=alice&sort_order=asc", "cdba"],
  ["sort_by=ttft_ms", "efdcba"],
  ["sort_by=endTime&sort_order=asc", "abcdef"],
])("%s selects and sorts", async (params, ids) => {
  expect(idsIn(await pageOf(`${RANGE}&${params}`)).join("")).toBe(ids);
});

test("a range has days of the configured zone or seconds in UTC, both ends included", async () => {
  const between = (start: string, end: string) =>
    pageOf(`start_date=${start}&end_date=${end}`).then(idsIn);
  expect(await between(`${DAY} 12:00:02`, `${DAY} 12:00:04`)).toEqual([
    "d",
    "c",
    "b",
  ]);
  expect(await between(`${DAY}T12:00:05Z`, `${DAY}T23:00:00Z`)).toEqual([
    "f",
    "e",
  ]);
  expect(await between("2026-03-09", "2026-03-09")).toEqual([]);
});

test("a request is found without a range", async () => {
  expect(idsIn(await pageOf("request_id=c"))).toEqual(["c"]);
});

test("a caller sees its own rows only", async () => {
  expect(idsIn(await pageOf(RANGE, key))).toEqual(["d", "c", "b", "a"]);
  expect(await pageOf(`${RANGE}&user_id=bob`, key)).toMatchObject({
    data: [],
    total: 0,
    total_pages: 0,
  });
  expect(idsIn(await pageOf("request_id=e", key))).toEqual([]);
});

test("a rotated key's rows are found by its alias and by its new secret", async () => {
  const { key: fresh } = await fixture.post("/key/regenerate", { key });
  key = String(fresh);
  for (const params of ["key_alias=laptop", `api_key=${key}`]) {
    expect(idsIn(await pageOf(`${RANGE}&${params}`))).toHaveLength(4);
  }
  expect(idsIn(await pageOf(RANGE, key))).toHaveLength(4);
});

/** All pages by `next_cursor`. */
async function walk(params: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let cursor = ""; ;) {
    const page = await pageOf(`${params}${cursor}`);
    ids.push(...idsIn(page));
    const next = page["next_cursor"] as unknown as string | null;
    if (next === null) {
      return ids;
    }
    cursor = `&cursor=${next}`;
  }
}

test("a cursor reads each row once, in either order, also rows of one moment", async () => {
  expect((await walk(`${RANGE}&page_size=2`)).join("")).toBe("fedcba");
  expect((await walk(`${RANGE}&page_size=3&sort_order=asc`)).join("")).toBe(
    "abcdef",
  );
  const same = { ...at(0), model_group: "same" };
  await fixture.spend(
    ...["t", "u", "v", "w"].map((id) => ({ ...same, request_id: id })),
  );
  expect((await walk(`${RANGE}&model_group=same&page_size=1`)).join("")).toBe(
    "wvut",
  );
});

test("rows are counted up to a limit, beyond which the cursor continues", async () => {
  const many = "2026-03-01";
  await query(
    fixture.pool,
    `INSERT INTO spend_log (request_id, started_at, ended_at, day, call_type, status, spend)
       SELECT 'many-' || n, '${many}T00:00:00Z'::timestamptz + n * interval '1 s', '${many}T00:00:00Z'::timestamptz + n * interval '1 s', '${many}', 'acompletion', 'success', 0
         FROM generate_series(1, 10050) n`,
  );
  const range = `start_date=${many}&end_date=${many}`;
  const last = await pageOf(`${range}&page_size=1000&page=10`);
  expect(last).toMatchObject({
    total: 10_000,
    total_is_capped: true,
    total_pages: 10,
  });
  const next = await pageOf(
    `${range}&page_size=1000&cursor=${String(last["next_cursor"])}`,
  );
  expect(idsIn(next)).toHaveLength(50);
  expect(next["next_cursor"]).toBeNull();
});

test.each([
  ["", "start_date"],
  [`start_date=${DAY}`, "end_date"],
  [`start_date=${DAY} 12:00:00&end_date=${DAY} 11:00:00`, "end_date"],
  [`start_date=2026-02-30&end_date=${DAY}`, "start_date"],
  [`start_date=${DAY}&end_date=${DAY} 25:00:00`, "end_date"],
  [`${RANGE}&page_size=1001`, "page_size"],
  [`${RANGE}&page=201`, "page"],
  [`${RANGE}&sort_by=user`, "sort_by"],
  [`${RANGE}&sort_order=up`, "sort_order"],
  [`${RANGE}&status_filter=late`, "status_filter"],
  [`${RANGE}&cache_hit_filter=maybe`, "cache_hit_filter"],
  [`${RANGE}&min_spend=much`, "min_spend"],
  [`${RANGE}&cursor=a&sort_by=spend`, "cursor"],
  [`${RANGE}&cursor=unknown`, "cursor"],
  [`${RANGE}&stauts_filter=failure`, "stauts_filter"],
])("%s is rejected by name", async (params, param) => {
  expect(
    await fixture.rejected("GET", `/spend/logs/v2?${params}`),
  ).toMatchObject({ status: 400, error: { param } });
});
