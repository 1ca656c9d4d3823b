import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../gateway/access/keys.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { MASTER_KEY } from "../../test/servers/gateway.ts";
import { openAdminApi } from "./admin-api.ts";
import { openKeysOverBudget } from "./keys-over-budget.ts";

let gateway: AdminFixture;

beforeAll(async () => {
  gateway = await startAdminFixture();
});
afterAll(() => gateway.stop());

test("a key over its budget needs attention until there is room again", async () => {
  let now = 1000;
  const find = openKeysOverBudget(
    openAdminApi({
      address: gateway.url,
      credential: () => MASTER_KEY,
      timeoutMs: 10_000,
    }),
    () => now,
  );
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
      command: "hearth keys list",
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
