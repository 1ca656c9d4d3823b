import { startAdminFixture, type AdminFixture } from "./admin.ts";

/** A gateway with two organizations, `own-org` and `strange-org`, a team in each, and people by what is asked for them. */
export interface TwoOrganizations {
  readonly fixture: AdminFixture;
  /** Keys by whose they are; tests add their own. */
  readonly keys: Map<string, string>;
  /** "" where there is none. */
  keyOf(who: string): string;
  /** The status of somebody's request: a POST where there is a body. */
  status(who: string, path: string, body?: unknown): Promise<number>;
}

export async function startTwoOrganizations({
  users,
  admins,
}: {
  /** Fields of /user/new by id. */
  readonly users: Readonly<Record<string, object>>;
  /** The organizations that users administer. */
  readonly admins: Readonly<Record<string, "own-org" | "strange-org">>;
}): Promise<TwoOrganizations> {
  const fixture = await startAdminFixture();
  const keys = new Map<string, string>();
  const keyOf = (who: string) => keys.get(who) ?? "";
  for (const id of ["own", "strange"]) {
    await fixture.post("/organization/new", { organization_id: `${id}-org` });
    await fixture.post("/team/new", {
      team_id: `${id}-team`,
      organization_id: `${id}-org`,
    });
  }
  for (const [id, fields] of Object.entries(users)) {
    const made = await fixture.post("/user/new", { user_id: id, ...fields });
    keys.set(id, String(made["key"]));
  }
  for (const [id, organization] of Object.entries(admins)) {
    await fixture.post("/organization/member_add", {
      organization_id: organization,
      member: { user_id: id, role: "org_admin" },
    });
  }
  return {
    fixture,
    keys,
    keyOf,
    status: async (who, path, body) => {
      const method = body === undefined ? "GET" : "POST";
      return (await fixture.request(method, path, body, keyOf(who))).status;
    },
  };
}
