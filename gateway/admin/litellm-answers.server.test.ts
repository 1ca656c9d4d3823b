import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

const NEXT_MONTH = () => {
  const now = new Date();
  return new Date(
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
  ).toISOString();
};

test("a tier shows when budgets that refer to it reset", async () => {
  const tier = { budget_id: "monthly", max_budget: 5, budget_duration: "1mo" };
  const reset = { ...tier, budget_reset_at: NEXT_MONTH() };
  expect(await fixture.post("/budget/new", tier)).toMatchObject(reset);
  expect(
    await fixture.post("/budget/info", { budgets: ["monthly"] }),
  ).toMatchObject([reset]);
  expect(await fixture.get("/budget/list")).toMatchObject([reset]);
  expect(
    await fixture.post("/budget/new", { budget_id: "whole", max_budget: 5 }),
  ).toMatchObject({ budget_reset_at: null });
  expect(await fixture.post("/budget/delete", { id: "whole" })).toMatchObject({
    budget_id: "whole",
    budget_reset_at: null,
  });
});

test("limits in force are in litellm_budget_table: those of the row, else of its tier", async () => {
  await fixture.post("/budget/new", {
    budget_id: "tier",
    max_budget: 7,
    rpm_limit: 3,
    budget_duration: "1mo",
  });
  const expected = {
    budget_id: "tier",
    max_budget: 2,
    rpm_limit: 3,
    tpm_limit: null,
    budget_duration: "1mo",
    budget_reset_at: NEXT_MONTH(),
  };
  const given = { budget_id: "tier", max_budget: 2 };
  const customer = { user_id: "customer", ...given };
  expect(await fixture.post("/customer/new", customer)).toMatchObject({
    budget_id: "tier",
    litellm_budget_table: expected,
  });
  expect(
    await fixture.get("/customer/info?end_user_id=customer"),
  ).toMatchObject({ litellm_budget_table: expected });
  expect(await fixture.get("/customer/list")).toMatchObject([
    { litellm_budget_table: expected },
  ]);
  expect(
    await fixture.post("/tag/new", { name: "tag", ...given }),
  ).toMatchObject({ litellm_budget_table: expected });
  const key = await fixture.createKey(given);
  expect(await fixture.get(`/key/info?key=${hashKey(key)}`)).toMatchObject({
    info: { litellm_budget_table: expected },
  });
  const team = await fixture.post("/team/new", {});
  await fixture.post("/team/member_add", {
    team_id: team["team_id"],
    member: { user_id: "member", role: "user" },
    ...given,
  });
  const { team_memberships: members } = await fixture.get(
    `/team/info?team_id=${String(team["team_id"])}`,
  );
  expect(members).toContainEqual(
    expect.objectContaining({
      user_id: "member",
      litellm_budget_table: expect.objectContaining(expected),
    }),
  );
  expect(
    await fixture.post("/customer/new", { user_id: "unlimited" }),
  ).toMatchObject({ budget_id: null, litellm_budget_table: null });
});

test("organizations are listed with members, teams and their budget", async () => {
  const id = String(
    (
      await fixture.post("/organization/new", {
        organization_alias: "Works",
        max_budget: 9,
      })
    )["organization_id"],
  );
  await fixture.post("/organization/member_add", {
    organization_id: id,
    member: { user_id: "worker", role: "org_admin" },
  });
  const team = await fixture.post("/team/new", { organization_id: id });
  const expected = {
    organization_id: id,
    litellm_budget_table: { budget_id: null, max_budget: 9 },
    members: [
      { organization_id: id, user_id: "worker", user_role: "org_admin" },
    ],
    teams: [{ team_id: team["team_id"] }],
  };
  expect(await fixture.get("/organization/list")).toMatchObject([expected]);
  expect(
    await fixture.get(`/organization/info?organization_id=${id}`),
  ).toMatchObject(expected);
  const changed = await fixture.request(
    "PATCH",
    "/organization/member_update",
    {
      organization_id: id,
      user_id: "worker",
      role: "internal_user",
    },
  );
  expect(changed.json).toMatchObject({ user_role: "internal_user" });
});

test("the report of a key, and of each key of a user, is in LiteLLM's shape", async () => {
  const [one, two] = [
    await fixture.createKey({ user_id: "spender" }),
    await fixture.createKey({ user_id: "spender" }),
  ].map(hashKey);
  const row = { user_id: "spender", api_key: one ?? "" };
  await fixture.spend(
    { ...row, spend: 0.5, model_group: "a" },
    { ...row, spend: 0.25, model_group: "b", prompt_tokens: 7 },
    { ...row, spend: 0.125, api_key: two ?? "", model_group: "a" },
  );
  const first = {
    api_key: one,
    total_cost: 0.75,
    total_input_tokens: 17,
    total_output_tokens: 8,
    model_details: [
      {
        model: "a",
        total_cost: 0.5,
        total_input_tokens: 10,
        total_output_tokens: 4,
      },
      { model: "b", total_cost: 0.25, total_input_tokens: 7 },
    ],
  };
  expect(
    await fixture.get(`/global/spend/report?api_key=${one}`),
  ).toMatchObject([first]);
  expect(
    await fixture.get("/global/spend/report?internal_user_id=spender"),
  ).toMatchObject([first, { api_key: two, total_cost: 0.125 }]);
});
