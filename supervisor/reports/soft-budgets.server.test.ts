import { afterEach, beforeEach, expect, test } from "vitest";
import { hashKey } from "../../gateway/access/keys.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { readerUrl } from "../../test/servers/database.ts";
import type { Alarm, Alarms } from "../alerts/alarm.ts";
import { checkSoftBudgets } from "./soft-budgets.ts";

let gateway: AdminFixture;
let raised: Map<string, Alarm>;

beforeEach(async () => {
  gateway = await startAdminFixture();
  raised = new Map();
});
afterEach(() => gateway.stop());

function check(): Promise<void> {
  const alarms: Alarms = {
    raise: (alarm) => void raised.set(alarm.fingerprint, alarm),
    clear: (fingerprint) => void raised.delete(fingerprint),
  };
  return checkSoftBudgets(
    readerUrl(gateway.databaseUrl, "supervisor"),
    alarms,
    new AbortController().signal,
  );
}

test("a reached soft budget raises an alarm with its name until there is room again", async () => {
  const key = await gateway.createKey({
    user_id: "ann",
    key_alias: "ann-laptop",
    soft_budget: 0.4,
  });
  await gateway.post("/user/update", { user_id: "ann", soft_budget: 5 });
  const token = hashKey(key);
  const call = { api_key: token, user_id: "ann", spend: 0.25 };
  await gateway.spend(call);
  await check();
  expect(raised.size).toBe(0);

  await gateway.spend(call);
  await check();
  expect([...raised.values()]).toEqual([
    {
      fingerprint: `soft-budget:key:${token}`,
      level: "warning",
      subject: "key ann-laptop",
      text: "key ann-laptop has reached its soft budget: $ 0.50 of $ 0.40 spent; calls continue",
      command: "hearth report spend",
    },
  ]);

  await gateway.post("/key/update", { key, soft_budget: 2 });
  await check();
  expect(raised.size).toBe(0);
});

test("a deleted key raises no alarm", async () => {
  const key = await gateway.createKey({ soft_budget: 0.1 });
  await gateway.spend({ api_key: hashKey(key), spend: 0.25 });
  await check();
  expect(raised.size).toBe(1);
  await gateway.post("/key/delete", { keys: [key] });
  await check();
  expect(raised.size).toBe(0);
});
