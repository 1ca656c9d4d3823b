import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdminFixture } from "../../test/servers/admin.ts";
import {
  startTwoOrganizations,
  type TwoOrganizations,
} from "../../test/servers/two-organizations.ts";
import { query } from "../database/pool.ts";

/** A team's keys spend their user's own budget only with consent: of the user, or of an admin of both. */

let fixture: AdminFixture;
let keyOf: TwoOrganizations["keyOf"];
let status: TwoOrganizations["status"];

beforeAll(async () => {
  ({ fixture, keyOf, status } = await startTwoOrganizations({
    users: {
      "team-admin": { teams: [{ team_id: "own-team", user_role: "admin" }] },
      "org-admin": {},
      victim: { max_budget: 0.00001 },
      drawn: { max_budget: 0.00001 },
      colleague: { organizations: ["own-org"] },
      recruit: { organizations: ["own-org"], teams: ["own-team"] },
    },
    admins: { "org-admin": "own-org" },
  }));
});

afterAll(() => fixture?.stop());

const ACCEPT = "/team/member_accept";

async function add(user_id: string, by?: string): Promise<void> {
  await fixture.post(
    "/team/member_add",
    { team_id: "own-team", member: { user_id } },
    by,
  );
}

async function isAccepted(user: string): Promise<unknown> {
  const { team_memberships: members } = await fixture.get(
    "/team/info?team_id=own-team",
  );
  return (
    members as unknown as readonly {
      readonly user_id: string;
      readonly accepted: boolean;
    }[]
  ).find(({ user_id }) => user_id === user)?.accepted;
}

async function spendOf(user_id: string): Promise<unknown> {
  const { user_info: user } = await fixture.get(
    `/user/info?user_id=${user_id}`,
  );
  return user?.["spend"];
}

test("a user added by a team admin pays nothing until the user accepts", async () => {
  await add("victim", keyOf("team-admin"));
  const { key } = await fixture.post(
    "/key/generate",
    { team_id: "own-team", user_id: "victim" },
    keyOf("team-admin"),
  );
  const ofTeam = String(key);
  for (const text of ["one", "two"]) {
    expect((await fixture.chat(ofTeam, text)).status).toBe(200);
  }
  await expect.poll(fixture.differences).toEqual([]);
  expect(await spendOf("victim")).toBe(0);

  const body = { team_id: "own-team", user_id: "victim" };
  expect(await status("team-admin", ACCEPT, body)).toBe(403);
  const own = await fixture.rejected("POST", ACCEPT, body, ofTeam);
  expect(own).toMatchObject({
    status: 403,
    error: { message: expect.stringContaining("user victim") },
  });
  const limited = await fixture.post(
    "/key/generate",
    { max_budget: 1 },
    keyOf("victim"),
  );
  expect(
    (await fixture.request("POST", ACCEPT, body, String(limited["key"])))
      .status,
  ).toBe(403);
  expect(await isAccepted("victim")).toBe(false);

  expect(
    await fixture.post(ACCEPT, { team_id: "own-team" }, keyOf("victim")),
  ).toMatchObject({ ...body, accepted: true });
  await expect
    .poll(async () => (await fixture.chat(ofTeam, "agreed")).json["error"], {
      timeout: 5_000,
    })
    .toMatchObject({
      type: "budget_exceeded",
      message: expect.stringContaining("User=victim"),
    });
  await expect.poll(() => spendOf("victim")).toBeGreaterThan(0);
  await expect.poll(fixture.differences).toEqual([]);
});

test("a membership is accepted at once when its creator may accept it", async () => {
  expect(await isAccepted("recruit")).toBe(true);
  await add("colleague", keyOf("org-admin"));
  expect(await isAccepted("colleague")).toBe(true);
  await add("stranger", keyOf("org-admin"));
  expect(await isAccepted("stranger")).toBe(false);
  await add("by-proxy-admin");
  expect(await isAccepted("by-proxy-admin")).toBe(true);
});

test("the migration accepts existing memberships according to their creators", async () => {
  const file = new URL(
    "../database/migrations/0013_user_pays.sql",
    import.meta.url,
  );
  const [backfill = ""] =
    /^UPDATE team_members .*?;$/ms.exec(await readFile(file, "utf8")) ?? [];
  const accepted = () =>
    query(
      fixture.pool,
      "SELECT user_id FROM team_members WHERE accepted AND team_id = 'own-team' AND user_id <> 'victim' ORDER BY 1",
    );
  const before = await accepted();
  expect(before.map((row) => row["user_id"])).toEqual([
    "by-proxy-admin",
    "colleague",
    "default_user_id",
    "recruit",
    "team-admin",
  ]);
  await query(fixture.pool, "UPDATE team_members SET accepted = false");
  await query(fixture.pool, backfill);
  expect(await accepted()).toEqual(before);
  expect(await isAccepted("victim")).toBe(false);
});

test("a member who is removed and added again by the team's admin has not accepted", async () => {
  const member = { team_id: "own-team", user_id: "recruit" };
  await fixture.post("/team/member_delete", member, keyOf("team-admin"));
  await add("recruit", keyOf("team-admin"));
  expect(await isAccepted("recruit")).toBe(false);
  expect(await status("org-admin", ACCEPT, member)).toBe(200);
  expect(await isAccepted("recruit")).toBe(true);
});

test("a non-member cannot accept a membership", async () => {
  expect(await status("org-admin", ACCEPT, { team_id: "own-team" })).toBe(404);
  expect(await status("org-admin", ACCEPT, { team_id: "strange-team" })).toBe(
    404,
  );
  const other = { team_id: "strange-team", user_id: "default_user_id" };
  expect(await status("org-admin", ACCEPT, other)).toBe(403);
});

test("an org_admin cannot make a user of others pay by adding it to its organization", async () => {
  const user_id = "drawn";
  await fixture.post(
    "/organization/member_add",
    { organization_id: "own-org", member: { user_id } },
    keyOf("org-admin"),
  );
  await add(user_id, keyOf("org-admin"));
  expect(await isAccepted(user_id)).toBe(false);
  const member = { team_id: "own-team", user_id };
  expect(await status("org-admin", ACCEPT, member)).toBe(403);
  const ofOrganization = { organization_id: "own-org", user_id };
  expect(await status("org-admin", "/key/generate", ofOrganization)).toBe(403);
  const { key } = await fixture.post(
    "/key/generate",
    { organization_id: "own-org" },
    keyOf("org-admin"),
  );
  const moved = { key, user_id };
  expect(await status("org-admin", "/key/update", moved)).toBe(403);
  expect(await status(user_id, "/key/generate", ofOrganization)).toBe(200);
  expect(await status(user_id, ACCEPT, { team_id: "own-team" })).toBe(200);
});
