import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

/** Creates a team and its admin; returns the admin's key. */
async function teamWith(team_id: string, fields: object): Promise<string> {
  await fixture.post("/team/new", { team_id, ...fields });
  const admin = await fixture.post("/user/new", {
    user_id: `admin of ${team_id}`,
    teams: [{ team_id, user_role: "admin" }],
  });
  return String(admin["key"]);
}

test("the creator of a team is its admin, even when listed as a plain member", async () => {
  const made = await fixture.post("/team/new", {
    members_with_roles: [
      { user_id: "default_user_id", role: "user" },
      { user_id: "somebody", role: "user" },
    ],
  });
  expect(made["members_with_roles"]).toMatchObject([
    { user_id: "default_user_id", role: "admin" },
    { user_id: "somebody", role: "user" },
  ]);
});

test.each(["/team/model/add", "/team/model/delete"])(
  "%s is rejected for a team that may use all models",
  async (path) => {
    const team_id = `all of ${path.replaceAll("/", " ")}`;
    await fixture.post("/team/new", { team_id });
    expect(
      await fixture.rejected("POST", path, { team_id, models: ["mock"] }),
    ).toMatchObject({
      status: 400,
      error: {
        param: "models",
        message: expect.stringContaining("may use all models"),
      },
    });
    expect(await fixture.get(`/team/info?team_id=${team_id}`)).toMatchObject({
      team_info: { models: [] },
    });
  },
);

test("a team's admin sets its models by either route, among those of its organization", async () => {
  await fixture.post("/organization/new", {
    organization_id: "frugal",
    models: ["mock", "small-*"],
  });
  const key = await teamWith("modest", {
    organization_id: "frugal",
    models: ["mock"],
  });
  const team_id = "modest";
  for (const [path, models, after] of [
    ["/team/update", ["mock", "small-one"], ["mock", "small-one"]],
    ["/team/model/add", ["small-two"], ["mock", "small-one", "small-two"]],
    ["/team/update", ["no-default-models"], ["no-default-models"]],
    ["/team/update", [], []],
  ] as const) {
    await fixture.post(path, { team_id, models }, key);
    expect(await fixture.get(`/team/info?team_id=${team_id}`)).toMatchObject({
      team_info: { models: after },
    });
  }
  await fixture.post("/team/update", { team_id, models: ["mock"] }, key);
  for (const path of ["/team/update", "/team/model/add"]) {
    for (const model of ["large", "*", "all-proxy-models"]) {
      expect(
        await fixture.rejected("POST", path, { team_id, models: [model] }, key),
      ).toMatchObject({ status: 403, error: { param: "models" } });
    }
  }
  // Renaming a team created before the organization's list was cut does not check its models.
  await fixture.request("PATCH", "/organization/update", {
    organization_id: "frugal",
    models: ["small-*"],
  });
  await fixture.post("/team/update", { team_id, team_alias: "M" }, key);
});

test.each(["guardrails", "tags"])(
  "a team's admin cannot remove %s that its metadata sets",
  async (field) => {
    const team_id = `with ${field}`;
    const metadata = { [field]: ["bound"], note: "old" };
    const admin = await teamWith(team_id, { metadata });
    const update = (fields: object) =>
      fixture.request(
        "POST",
        "/team/update",
        { team_id, metadata: fields },
        admin,
      );
    expect((await update({ note: "new" })).status).toBe(403);
    expect((await update({ ...metadata, note: "new" })).status).toBe(200);
  },
);

test("the admin of a team in no organization sets any models", async () => {
  const key = await teamWith("free", { models: ["mock"] });
  await fixture.post("/team/update", { team_id: "free", models: ["any"] }, key);
  await fixture.post(
    "/team/model/add",
    { team_id: "free", models: ["other"] },
    key,
  );
  expect(
    await fixture.rejected(
      "POST",
      "/team/update",
      { team_id: "free", max_budget: 1 },
      key,
    ),
  ).toMatchObject({ status: 403, error: { param: "max_budget" } });
});

test("an unknown user is not a member, like any other non-member", async () => {
  await fixture.post("/team/new", { team_id: "small" });
  await fixture.post("/organization/new", { organization_id: "small" });
  for (const [method, path, where] of [
    ["POST", "/team/member_delete", { team_id: "small" }],
    ["POST", "/team/member_update", { team_id: "small" }],
    ["DELETE", "/organization/member_delete", { organization_id: "small" }],
    [
      "PATCH",
      "/organization/member_update",
      { organization_id: "small", role: "org_admin" },
    ],
  ] as const) {
    for (const who of [
      { user_id: "nobody" },
      { user_email: "nobody@example.org" },
      { user_id: "somebody" },
    ]) {
      expect(
        await fixture.rejected(method, path, { ...where, ...who }),
      ).toMatchObject({ status: 400, error: { param: "user_id" } });
    }
  }
});
