import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { hashKey } from "./keys.ts";

/** Requests with the master key for a user who is signed in at the console, and users who are blocked. */

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
  for (const user of [
    { user_id: "anna", max_budget: 5, models: ["mock"] },
    { user_id: "bert" },
    { user_id: "watcher", user_role: "internal_user_viewer" },
    { user_id: "boss", user_role: "proxy_admin" },
  ]) {
    await fixture.post("/user/new", { ...user, auto_create_key: false });
  }
});
afterAll(() => fixture?.stop());

async function asUser(
  user: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly json: Json }> {
  return fixture.request(method, path, body, undefined, {
    "x-hearth-acting-user": user,
    "x-hearth-changed-by": `${user}@example.org (home)`,
  });
}

test("a user creates, lists, changes, rotates and deletes own keys, and the audit log names the person", async () => {
  const created = await asUser("anna", "POST", "/key/generate", {
    key_alias: "laptop",
    max_budget: 2,
  });
  expect(created.json).toMatchObject({ user_id: "anna", max_budget: 2 });
  const key = String(created.json["token"]);
  const list = await asUser("anna", "GET", "/key/list");
  expect(list.json).toMatchObject({ keys: [key], total_count: 1 });
  const change = { key, rpm_limit: 7 };
  const updated = await asUser("anna", "POST", "/key/update", change);
  expect(updated.json).toMatchObject({ rpm_limit: 7 });
  const rotated = await asUser("anna", "POST", "/key/regenerate", { key });
  const next = hashKey(String(rotated.json["key"]));
  const usage = await asUser("anna", "GET", `/key/usage?key=${next}`);
  expect(usage.status).toBe(200);
  const gone = await asUser("anna", "POST", "/key/delete", { keys: [next] });
  expect(gone.json).toEqual({ deleted_keys: [next] });
  const log = (await fixture.get(
    "/audit?object_type=key",
  )) as unknown as Json[];
  expect(new Set(log.map(({ actor }) => actor))).toEqual(
    new Set(["anna@example.org (home)"]),
  );
  expect(log.map(({ action }) => action)).toEqual(
    expect.arrayContaining(["created", "updated", "rotated", "deleted"]),
  );
});

describe("the rights are those of the user's own key", () => {
  test.each([
    ["POST", "/key/generate", { user_id: "bert" }],
    ["POST", "/key/generate", { max_budget: 1, spend: 3 }],
    ["POST", "/key/block", {}],
    ["POST", "/user/update", { user_id: "anna", max_budget: 500 }],
    ["POST", "/team/new", {}],
    ["GET", "/spend/keys", undefined],
    ["GET", "/audit", undefined],
    ["POST", "/v1/chat/completions", { model: "mock", messages: [] }],
  ] as const)("no %s %s with %j", async (method, path, body) => {
    const key = await fixture.createKey({ user_id: "anna" });
    const sent = path === "/key/block" ? { key } : body;
    expect((await asUser("anna", method, path, sent)).status).toBe(403);
  });

  test("keys of others are out of reach", async () => {
    const key = hashKey(await fixture.createKey({ user_id: "bert" }));
    for (const [method, path, body] of [
      ["GET", `/key/info?key=${key}`, undefined],
      ["GET", `/key/usage?key=${key}`, undefined],
      ["POST", "/key/update", { key, max_budget: 1 }],
      ["POST", "/key/regenerate", { key }],
      ["POST", "/key/delete", { keys: [key] }],
    ] as const) {
      const { status } = await asUser("anna", method, path, body);
      expect([path, status]).toEqual([path, 403]);
    }
    const { json } = await asUser("anna", "GET", "/key/list?user_id=bert");
    expect(json).toMatchObject({ keys: [] });
    const calls = await asUser("anna", "GET", `/spend/calls?key=${key}`);
    expect(calls.json["calls"] ?? []).toEqual([]);
  });

  test("a viewer of own keys creates none", async () => {
    expect((await asUser("watcher", "POST", "/key/generate", {})).status).toBe(
      403,
    );
    expect((await asUser("watcher", "GET", "/key/list")).status).toBe(200);
  });
});

test("an unknown user is named", async () => {
  expect(await asUser("nobody", "GET", "/key/list")).toMatchObject({
    status: 404,
    json: { error: { message: expect.stringContaining("The user nobody") } },
  });
});

test("only the master key acts for users, whatever the role of another key is", async () => {
  for (const user_id of ["anna", "boss"]) {
    const key = await fixture.createKey({ user_id });
    for (const path of ["/key/list", "/v1/models"]) {
      const answer = await fixture.request("GET", path, undefined, key, {
        "x-hearth-acting-user": "bert",
      });
      expect(answer.status).toBe(403);
      expect(answer.text).toContain("Only the master key may act for a user");
    }
  }
});

describe("a blocked user", () => {
  test("is denied with every key, of a team too, until it is unblocked", async () => {
    await fixture.post("/team/new", { team_id: "crew" });
    const member = { user_id: "bert", role: "user" };
    await fixture.post("/team/member_add", { team_id: "crew", member });
    const keys = [
      await fixture.createKey({ user_id: "bert" }),
      await fixture.createKey({ user_id: "bert", team_id: "crew" }),
    ];
    const statuses = async () => [
      ...(await Promise.all(
        keys.map(async (key) => {
          const body = {
            model: "mock",
            messages: [{ role: "user", content: "x" }],
          };
          const path = "/v1/chat/completions";
          return (await fixture.request("POST", path, body, key)).status;
        }),
      )),
      (await asUser("bert", "GET", "/key/list")).status,
    ];
    expect(await statuses()).toEqual([200, 200, 200]);
    await fixture.post("/user/update", { user_id: "bert", blocked: true });
    expect(await statuses()).toEqual([401, 401, 401]);
    expect(
      await fixture.rejected("GET", "/key/list", undefined, keys[0]),
    ).toMatchObject({
      error: { message: expect.stringContaining("User=bert is blocked.") },
    });
    await fixture.post("/user/update", { user_id: "bert", blocked: false });
    expect(await statuses()).toEqual([200, 200, 200]);
  });
});

test("the account of a user is set by a proxy_admin only, belongs to one user, and finds the user", async () => {
  const account = { sso_user_id: "home:4711,x" };
  await fixture.post("/user/update", { user_id: "anna", ...account });
  const query = new URLSearchParams(account).toString();
  expect(await fixture.get(`/user/list?${query}`)).toMatchObject({
    users: [{ user_id: "anna" }],
    total: 1,
  });
  const taken = { user_id: "bert", ...account };
  expect(await fixture.rejected("POST", "/user/update", taken)).toMatchObject({
    status: 400,
    error: { param: "sso_user_id" },
  });
  await fixture.post("/organization/new", {
    organization_id: "acme",
    organization_alias: "acme",
  });
  const chief = { user_id: "anna", role: "org_admin" };
  await fixture.post("/organization/member_add", {
    organization_id: "acme",
    member: chief,
  });
  const fresh = {
    user_id: "carl",
    organizations: ["acme"],
    auto_create_key: false,
  };
  expect((await asUser("anna", "POST", "/user/new", fresh)).status).toBe(200);
  for (const path of ["/user/new", "/user/update"]) {
    const body = { ...fresh, sso_user_id: "home:1" };
    const { status, json } = await asUser(
      "anna",
      "POST",
      path,
      path === "/user/new"
        ? { ...body, user_id: "dora" }
        : { user_id: "carl", sso_user_id: "home:1" },
    );
    expect(json).toMatchObject({ error: { param: "sso_user_id" } });
    expect(status).toBe(403);
  }
});
