import { afterEach, expect, test, vi } from "vitest";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import {
  KEY_COLUMNS,
  KeyCounter,
  stateFilters,
  type KeyCounts,
} from "./key-list.ts";
import { readList, viewList } from "./list-view.ts";
import { sortsOf } from "./noun-list.ts";

const KEY_SORTS = sortsOf({ columns: KEY_COLUMNS });

afterEach(() => {
  vi.useRealTimers();
});

const none: KeyCounts = { active: 0, over_budget: 0, blocked: 0, expired: 0 };
const now = Date.UTC(2026, 10, 21, 12);

const key: UsedKeyRow = {
  token: "a".repeat(64),
  key_name: "sk-...abcd",
  key_alias: "anna-laptop",
  user_id: "anna",
  team_id: null,
  models: [],
  blocked: false,
  expires: null,
  max_budget: 5,
  budget_duration: "1mo",
  rpm_limit: null,
  tpm_limit: null,
  max_parallel_requests: null,
  spend: 4.75,
  budget_reset_at: "2026-12-01T00:00:00.000Z",
  created_at: "2026-11-01T00:00:00.000Z",
  created_by: "operator",
  budget_in_force: 5,
  state: "active",
  last_used_at: "2026-11-21T11:52:00.000Z",
  user_email: null,
  user_alias: null,
  team_alias: null,
};

function view(query: object, keys: readonly UsedKeyRow[], total = keys.length) {
  const parameters = readList(query, KEY_SORTS, ["active", "blocked"]);
  const list = viewList({
    path: "/keys",
    query: parameters,
    columns: KEY_COLUMNS,
    rows: keys,
    total,
    pages: Math.ceil(total / 25),
    at: { timeZone: "UTC", now },
  });
  return { list, states: stateFilters({ ...none, active: total }, parameters) };
}

test("a row shows spend, budget, reset time, owner and last use", () => {
  expect(view({}, [key]).list.rows).toEqual([
    [
      {
        kind: "name",
        href: `/keys/${key.token}`,
        text: "anna-laptop",
        note: "sk-...abcd",
      },
      { kind: "state", look: "warn", word: "nearly used up" },
      { kind: "number", text: "$ 4.75" },
      {
        kind: "budget",
        budget: {
          spent: "$ 4.75",
          against: "of $ 5.00 (resets 1 Dec, 00:00)",
          share: "95 %",
          meter: 95,
          look: "warn",
        },
      },
      { kind: "text", text: "anna" },
      { kind: "text", text: "8 min ago" },
    ],
  ]);
  const [bare] = view({}, [
    {
      ...key,
      key_alias: null,
      user_id: null,
      last_used_at: null,
      user_email: null,
      user_alias: null,
      team_alias: null,
      budget_in_force: null,
      budget_reset_at: null,
      expires: "2026-12-24T18:00:00.000Z",
    },
  ]).list.rows;
  const [calm] = view({}, [{ ...key, spend: 3.99 }]).list.rows;
  expect(calm?.[1]).toMatchObject({ look: "ok", word: "active" });
  expect(bare).toMatchObject([
    { text: "sk-...abcd", note: "" },
    { word: "active until 24 Dec, 18:00" },
    {},
    { budget: { against: "no budget", meter: null } },
    { text: "none" },
    { text: "never" },
  ]);
});

test("an expiry more than half a year away has its year, and a reset without a budget is not shown", () => {
  const [row] = view({}, [
    {
      ...key,
      budget_in_force: null,
      budget_reset_at: "2026-12-01T00:00:00.000Z",
      expires: "2028-01-03T18:00:00.000Z",
    },
  ]).list.rows;
  expect(row?.[1]).toMatchObject({ word: "active until 3 Jan 2028, 18:00" });
  expect(row?.[3]).toMatchObject({ budget: { against: "no budget" } });
});

test("a budget of zero is used up, and a meter ends at 100 %", () => {
  const [zero, over] = view({}, [
    { ...key, spend: 0, budget_in_force: 0 },
    { ...key, spend: 50 },
  ]).list.rows;
  expect(zero?.[3]).toMatchObject({ budget: { meter: 100, look: "bad" } });
  expect(over?.[3]).toMatchObject({ budget: { share: "1,000 %", meter: 100 } });
});

test("links keep the parameters of the list, and invalid ones give the first page", () => {
  const { list, states } = view(
    { search: "a&b", sort: "spend", order: "asc", page: "2" },
    [key],
    60,
  );
  expect(list.range).toBe("26 to 26 of 60");
  expect(list.previous).toBe("/keys?search=a%26b&sort=spend&order=asc");
  expect(list.next).toBe("/keys?search=a%26b&sort=spend&order=asc&page=3");
  expect(list.columns.find(({ title }) => title === "Spent")).toMatchObject({
    href: "/keys?search=a%26b&sort=spend&order=desc",
    sorted: "ascending",
  });
  expect(states[3]?.href).toBe(
    "/keys?search=a%26b&state=blocked&sort=spend&order=asc",
  );
  expect(
    readList(
      { search: ["x", "y"], state: "gone", sort: "token", page: "-1" },
      KEY_SORTS,
      ["active"],
    ),
  ).toEqual({
    search: "",
    state: "",
    sort: "created_at",
    order: "desc",
    page: 1,
  });
});

test("a page waits for the counts only at first, after a change, and after a minute", async () => {
  vi.useFakeTimers({ now });
  let active = 1;
  let changes = 0;
  const answers: (() => void)[] = [];
  const api = {
    address: "",
    as: () => {
      throw new Error("not used");
    },
    stream: () => Promise.reject(new Error("not used")),
    actingFor: () => {
      throw new Error("not used");
    },
    ask: () => {
      const answer = Promise.withResolvers<unknown>();
      const counts = { ...none, active };
      answers.push(() => answer.resolve({ state_counts: counts }));
      return answer.promise;
    },
  };
  const counter = new KeyCounter({
    api,
    patientApi: api,
    keys: "/keys",
    address: "",
    timeZone: "UTC",
    changes: () => changes,
  });
  const counted = async (isAnswered: boolean) => {
    const count = counter.count();
    if (isAnswered) {
      answers.shift()?.();
    }
    return (await count).active;
  };
  expect(await counted(true)).toBe(1);
  active = 2;
  expect(await counted(false)).toBe(1);
  expect(answers).toHaveLength(0);
  vi.setSystemTime(now + 6000);
  expect(await counted(false)).toBe(1);
  expect(await counted(false)).toBe(1);
  expect(answers).toHaveLength(1);
  answers.shift()?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(await counted(false)).toBe(2);
  changes += 1;
  active = 3;
  expect(await counted(true)).toBe(3);
  active = 4;
  vi.setSystemTime(now + 120_000);
  expect(await counted(true)).toBe(4);
});
