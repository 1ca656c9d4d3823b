import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";
import { DAY_MS } from "../../core/duration.ts";
import { windowAt } from "../ledger/budget-windows.ts";

/** Limits that a team sets for each of its members. */

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

/** A team with a member; answers the member's key. */
async function teamWithMember(
  teamId: string,
  fields: Readonly<Record<string, unknown>>,
): Promise<string> {
  await fixture.post("/team/new", { team_id: teamId, ...fields });
  const userId = `of ${teamId}`;
  await fixture.post("/team/member_add", {
    team_id: teamId,
    member: { role: "user", user_id: userId },
  });
  return fixture.createKey({ team_id: teamId, user_id: userId });
}

/** What the member spent, `daysAgo`. */
async function spent(teamId: string, key: string, daysAgo: number) {
  const at = new Date(Date.now() - daysAgo * DAY_MS).toISOString();
  await fixture.spend({
    api_key: hashKey(key),
    team_id: teamId,
    user_id: `of ${teamId}`,
    user_pays: false,
    spend: 0.5,
    started_at: at,
    ended_at: at,
    day: at.slice(0, "2026-01-01".length),
  });
}

async function memberOf(teamId: string) {
  const { team_memberships: members } = await fixture.get(
    `/team/info?team_id=${teamId}`,
  );
  const found = (members as unknown as readonly Record<string, unknown>[]).find(
    (member) => member["user_id"] === `of ${teamId}`,
  );
  return found ?? {};
}

const endOf = (duration: string) =>
  new Date(windowAt(duration, Date.now(), "UTC").end).toISOString();

test("budgets of members reset as their team says, also when that changes", async () => {
  const key = await teamWithMember("resetting", { team_member_budget: 0.6 });
  await spent("resetting", key, 2);
  await spent("resetting", key, 0);
  const over = await fixture.chat(key, "for life");
  expect(over.json["error"]?.["message"]).toMatch(/^Budget has been exceeded/);
  expect(await memberOf("resetting")).toMatchObject({
    spend: 1,
    budget_in_force: 0.6,
    budget_reset_at: null,
  });
  await fixture.post("/team/update", {
    team_id: "resetting",
    team_member_budget_duration: "1d",
  });
  expect(await memberOf("resetting")).toMatchObject({
    spend: 0.5,
    budget_reset_at: endOf("1d"),
  });
  expect(await memberOf("resetting")).toMatchObject({
    litellm_budget_table: { max_budget: 0.6, budget_duration: "1d" },
  });
  expect((await fixture.chat(key, "today")).status).toBe(200);
  await spent("resetting", key, 0);
  await fixture.running.gateway.ledger.totals.reload([
    "member:resetting/of resetting",
  ]);
  expect((await fixture.chat(key, "over again")).status).toBe(400);
  expect(await fixture.differences()).toEqual([]);
});

test.each([
  [{ budget_duration: "1mo" }, "1mo"],
  [{ budget_duration: "1mo", team_member_budget_duration: "1d" }, "1d"],
  [{ budget_duration: "1mo", team_member_budget_duration: null }, null],
  [{}, null],
])(
  "the first budget of members of a team with %j resets with %j",
  async (fields, expected) => {
    const { post } = fixture;
    const created = await post("/team/new", {
      ...fields,
      team_member_budget: 5,
    });
    expect(created["team_member_budget_duration"]).toBe(expected);
    const { team_id } = await post("/team/new", { budget_duration: "1w" });
    const { data } = await post("/team/update", {
      team_id,
      ...fields,
      team_member_budget: 5,
    });
    const orOwn = "budget_duration" in fields ? expected : "1w";
    expect(data?.["team_member_budget_duration"]).toBe(orOwn);
    const { data: later } = await post("/team/update", {
      team_id,
      budget_duration: "2d",
      team_member_budget: 6,
    });
    expect(later?.["team_member_budget_duration"]).toBe(orOwn);
  },
);

test("a member's own values come first, each on its own", async () => {
  const key = await teamWithMember("owned", {
    team_member_budget: 5,
    team_member_budget_duration: "1mo",
  });
  const change = {
    team_id: "owned",
    user_id: "of owned",
    max_budget_in_team: 7,
  };
  await fixture.post("/team/member_update", change);
  const { budgets } = await fixture.get("/me/usage", key);
  expect(budgets).toContainEqual(
    expect.objectContaining({
      of: "member",
      max_budget: 7,
      budget_duration: "1mo",
    }),
  );
  await fixture.post("/team/member_update", {
    ...change,
    budget_duration: "1d",
  });
  expect(await memberOf("owned")).toMatchObject({
    budget_in_force: 7,
    budget_reset_at: endOf("1d"),
  });
});

test.each([
  ["requests", { team_member_rpm_limit: 1 }],
  ["tokens", { team_member_tpm_limit: 1 }],
])("each member has the team's %s per minute", async (limit, fields) => {
  const teamId = `rated by ${limit}`;
  const key = await teamWithMember(teamId, fields);
  expect((await fixture.chat(key, "one")).status).toBe(200);
  const refused = await fixture.chat(key, "two");
  expect(refused.status).toBe(429);
  expect(refused.json["error"]?.["message"]).toContain(limit);
  const ofAnother = await fixture.createKey({ team_id: teamId });
  expect((await fixture.chat(ofAnother, "three")).status).toBe(200);
});

test.each([
  ["team_member_budget_duration", "1y"],
  ["team_member_rpm_limit", -1],
  ["team_member_tpm_limit", 1.5],
])("%s of %j is rejected by name", async (field, value) => {
  expect(
    await fixture.rejected("POST", "/team/new", { [field]: value }),
  ).toMatchObject({ status: 400, error: { param: field } });
});
