import { afterAll, beforeAll, expect, test } from "vitest";
import {
  ledgerRow,
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";
import { insertRows } from "../database/insert-rows.ts";
import { query, transaction } from "../database/pool.ts";
import { lockLedger } from "../database/totals.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

async function works(key: string): Promise<boolean> {
  const { status } = await fixture.request("GET", "/v1/models", undefined, key);
  return status === 200;
}

/** A rotated key whose previous secret still works. */
async function renewed(
  fields: Readonly<Record<string, unknown>> = {},
): Promise<{ readonly previous: string; readonly now: string }> {
  const previous = await fixture.createKey(fields);
  const created = await fixture.post("/key/regenerate", {
    key: previous,
    grace_period: "30d",
  });
  expect(await works(previous)).toBe(true);
  return { previous, now: String(created["key"]) };
}

test.each(["itself", "its hash"])(
  "a key is found by %s from before its rotation",
  async (by) => {
    const { previous, now } = await renewed();
    const named = by === "itself" ? previous : hashKey(previous);
    const token = hashKey(now);
    expect(await fixture.get(`/key/info?key=${named}`)).toMatchObject({
      info: { token },
    });
    expect(await fixture.post("/v2/key/info", { keys: [named] })).toMatchObject(
      { key: [named], info: [{ token }] },
    );
    expect(await fixture.get(`/key/list?key_hash=${named}`)).toMatchObject({
      keys: [token],
    });
    expect(
      await fixture.post("/key/update", { key: named, max_budget: 3 }),
    ).toMatchObject({ token, max_budget: 3 });
  },
);

test("a leaked previous secret cannot block or delete the key", async () => {
  const { previous, now } = await renewed();
  expect(await fixture.post("/key/block", { key: previous })).toMatchObject({
    token: hashKey(now),
    blocked: true,
  });
  await expect.poll(() => works(previous)).toBe(false);
  await expect.poll(() => works(now)).toBe(false);
  await fixture.post("/key/unblock", { key: previous });
  await expect.poll(() => works(previous)).toBe(true);
  expect(await fixture.post("/key/delete", { keys: [previous] })).toEqual({
    deleted_keys: [previous],
  });
  await expect.poll(() => works(previous)).toBe(false);
});

test.each(["itself", "its hash"])(
  "an expired previous secret cannot block or delete the key, named by %s",
  async (by) => {
    const previous = await fixture.createKey();
    const created = await fixture.post("/key/regenerate", { key: previous });
    const now = String(created["key"]);
    const other = await fixture.createKey();
    const named = by === "itself" ? previous : hashKey(previous);
    for (const [path, body, param] of [
      ["/key/delete", { keys: [other, named] }, "keys"],
      ["/key/block", { key: named }, "key"],
      ["/key/unblock", { key: named }, "key"],
    ] as const) {
      const refused = await fixture.rejected("POST", path, body);
      expect(refused).toMatchObject({ status: 404, error: { param } });
      expect(refused.error["message"]).toContain("was replaced");
      expect(JSON.stringify(refused)).not.toContain(previous);
    }
    for (const key of [now, other]) {
      expect(await works(key)).toBe(true);
    }
  },
);

test("a rotation without a grace period ends all previous secrets, one with a grace period keeps theirs", async () => {
  const { previous, now } = await renewed();
  const third = await fixture.post("/key/regenerate", {
    key: now,
    grace_period: "1h",
  });
  for (const key of [previous, now, String(third["key"])]) {
    expect(await works(key)).toBe(true);
  }
  const last = await fixture.post("/key/regenerate", { key: third["key"] });
  for (const key of [previous, now, String(third["key"])]) {
    await expect.poll(() => works(key)).toBe(false);
  }
  expect(await works(String(last["key"]))).toBe(true);
});

async function spendOf(key: string): Promise<unknown> {
  const { info } = await fixture.get(`/key/info?key=${hashKey(key)}`);
  return info?.["spend"];
}

test("a call that is recorded after the rotation of its key counts for the renewed key", async () => {
  const { previous, now } = await renewed({
    max_budget: 1,
    budget_duration: "1d",
  });
  await fixture.spend({ api_key: hashKey(previous), spend: 2 });
  expect(await spendOf(now)).toBe(2);
  await expect
    .poll(async () => {
      const { json } = await fixture.chat(now, "one more");
      return json["error"]?.["type"];
    })
    .toBe("budget_exceeded");
  expect(await fixture.differences()).toEqual([]);
});

test("a call that is recorded during the rotation of its key counts for the renewed key", async () => {
  const previous = await fixture.createKey({ max_budget: 10 });
  const windowing = { timeZone: "UTC", proxyDuration: null };
  const rotated = await transaction(fixture.pool, async (client) => {
    await lockLedger(client);
    const rotation = fixture.post("/key/regenerate", { key: previous });
    await expect
      .poll(() =>
        query(
          fixture.pool,
          "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        ),
      )
      .toHaveLength(1);
    const row = ledgerRow({ api_key: hashKey(previous), spend: 2 });
    await insertRows(client, [row], windowing);
    return { rotation };
  });
  const { key } = await rotated.rotation;
  expect(await spendOf(String(key))).toBe(2);
  expect(await fixture.differences()).toEqual([]);
});

test.each(["/key/update", "/key/regenerate"])(
  "%s creates the key's new user",
  async (path) => {
    const user_id = `created by ${path}`;
    const key = await fixture.createKey({});
    expect(await fixture.post(path, { key, user_id })).toMatchObject({
      user_id,
    });
    expect(
      await fixture.get(`/user/info?user_id=${encodeURIComponent(user_id)}`),
    ).toMatchObject({ user_info: { user_id }, total_keys: 1 });
  },
);
