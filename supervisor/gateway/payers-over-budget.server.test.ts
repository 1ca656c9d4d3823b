import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../gateway/access/keys.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { MASTER_KEY } from "../../test/servers/gateway.ts";
import { openAdminApi } from "./admin-api.ts";
import { openPayersOverBudget } from "./payers-over-budget.ts";

let gateway: AdminFixture;
let now = 1000;
let find: ReturnType<typeof openPayersOverBudget>;

beforeAll(async () => {
  gateway = await startAdminFixture();
  find = openPayersOverBudget(
    openAdminApi({
      address: gateway.url,
      credential: () => MASTER_KEY,
      timeoutMs: 10_000,
    }),
    () => now,
  );
});
afterAll(() => gateway.stop());

test("a key over its budget needs attention until there is room again", async () => {
  const key = await gateway.createKey({ key_alias: "anna", max_budget: 0.4 });
  const blocked = await gateway.createKey({
    key_alias: "old",
    max_budget: 0.1,
  });
  const spend = (by: string) =>
    gateway.spend({ api_key: hashKey(by), spend: 0.25 });
  await spend(key);
  await spend(blocked);
  await gateway.post("/key/block", { key: blocked });
  expect(await find()).toEqual([]);

  await spend(key);
  const found = [
    {
      name: "key anna",
      about: { topic: "key", id: hashKey(key) },
      level: "warning",
      text: "key anna is over its budget: $ 0.50 of $ 0.40 spent; its calls are denied",
      since: 1000,
      command: "hearth keys update anna --budget DOLLARS",
      output: null,
      tried: [],
      silenced: null,
    },
  ];
  expect(await find()).toEqual(found);
  now = 2000;
  expect(await find()).toEqual(found);

  await gateway.post("/key/update", { key, max_budget: 2 });
  expect(await find()).toEqual([]);
});

test("so do users, teams and organizations, by name; blocked teams deny their calls anyway", async () => {
  await gateway.post("/user/new", {
    user_id: "anna",
    user_alias: "Anna",
    max_budget: 1,
  });
  await gateway.post("/user/new", { user_id: "bob", max_budget: 5 });
  await gateway.post("/budget/new", { budget_id: "small", max_budget: 1 });
  for (const team of ["kitchen", "shed"]) {
    await gateway.post("/team/new", {
      team_id: team,
      team_alias: `The ${team}`,
      max_budget: 1,
    });
  }
  await gateway.post("/organization/new", {
    organization_id: "acme",
    organization_alias: "Acme",
    budget_id: "small",
  });
  const spent = { spend: 1.5 };
  await gateway.spend(
    { user_id: "anna", ...spent },
    { user_id: "bob", ...spent },
    { team_id: "kitchen", ...spent },
    { team_id: "shed", ...spent },
    { organization_id: "acme", ...spent },
  );
  await gateway.post("/team/block", { team_id: "shed" });
  const over = "is over its budget: $ 1.50 of $ 1.00 spent";
  expect(await find()).toMatchObject([
    {
      about: { topic: "user", id: "anna" },
      text: `user Anna ${over}; its calls are denied`,
      command: "hearth users update Anna --budget DOLLARS",
    },
    {
      about: { topic: "team", id: "kitchen" },
      text: `team The kitchen ${over}; its calls are denied`,
      command: "hearth teams update 'The kitchen' --budget DOLLARS",
    },
    {
      about: { topic: "organization", id: "acme" },
      text: `organization Acme ${over}; its calls are denied`,
      command: "hearth budgets",
    },
  ]);
  await gateway.post("/user/update", { user_id: "anna", max_budget: 2 });
  await gateway.post("/team/update", { team_id: "kitchen", max_budget: 2 });
  await gateway.post("/budget/update", { budget_id: "small", max_budget: 2 });
  expect(await find()).toEqual([]);
});

test("three of a kind are named, and the others counted", async () => {
  const keys = await Promise.all(
    Array.from({ length: 5 }, (_, at) =>
      gateway.createKey({ key_alias: `empty-${at}`, max_budget: 0 }),
    ),
  );
  const found = await find();
  expect(found).toHaveLength(4);
  expect(found.at(-1)).toMatchObject({
    about: { topic: "key", id: null },
    text: "2 more keys are over their budgets",
    command: "hearth keys list",
    count: 2,
  });
  await gateway.post("/key/delete", { keys: keys.slice(0, 1) });
  expect((await find()).at(-1)).toMatchObject({
    text: "1 more key is over its budget",
    count: 1,
  });
});
