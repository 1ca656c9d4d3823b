import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { query } from "../database/pool.ts";

let gateway: AdminFixture;

beforeAll(async () => {
  gateway = await startAdminFixture();
  await gateway.post("/team/new", { team_id: "crew", max_budget: 1 });
  await gateway.post("/user/new", { user_id: "ann", max_budget: 1 });
  await gateway.post("/customer/new", { user_id: "shop", max_budget: 1 });
  await gateway.post("/tag/new", { name: "red", max_budget: 1 });
  await gateway.post("/key/generate", {
    key: "sk-changed-0123456789",
    max_budget: 1,
  });
  // As if Postgres failed at this step.
  await query(
    gateway.pool,
    "ALTER TABLE spend_log ADD CONSTRAINT fails CHECK (call_type <> 'adjustment')",
  );
});
afterAll(() => gateway?.stop());

test.each([
  ["/key/generate", { key_alias: "created" }],
  ["/key/update", { key: "sk-changed-0123456789" }],
  ["/team/update", { team_id: "crew" }],
  ["/user/update", { user_id: "ann" }],
  ["/customer/update", { user_id: "shop" }],
  ["/tag/update", { name: "red" }],
])("%s changes nothing where the spend cannot be set", async (route, named) => {
  const { status } = await gateway.request("POST", route, {
    ...named,
    max_budget: 2,
    spend: 0.5,
  });
  expect(status).toBeGreaterThanOrEqual(500);
  expect(
    await query(
      gateway.pool,
      "SELECT entity FROM entity_budgets WHERE max_budget = 2",
    ),
  ).toEqual([]);
});
