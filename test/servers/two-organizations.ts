import { startAdminFixture, type AdminFixture } from "./admin.ts";

/** A gateway with two organizations, `own-org` and `strange-org`, a team in each, and the given users. */
export interface TwoOrganizations {
  readonly fixture: AdminFixture;
  /** Keys by user; tests add more. */
  readonly keys: Map<string, string>;
  /** "" if the user has no key. */
  keyOf(user: string): string;
  /** Sends a request as a user, a POST if there is a body, and returns its status. */
  status(user: string, path: string, body?: unknown): Promise<number>;
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
  const keyOf = (user: string) => keys.get(user) ?? "";
  for (const id of ["own", "strange"]) {
    await fixture.post("/organization/new", { organization_id: `${id}-org` });
    await fixture.post("/team/new", {
      team_id: `${id}-team`,
      organization_id: `${id}-org`,
    });
  }
  for (const [id, fields] of Object.entries(users)) {
    const created = await fixture.post("/user/new", { user_id: id, ...fields });
    keys.set(id, String(created["key"]));
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
    status: async (user, path, body) => {
      const method = body === undefined ? "GET" : "POST";
      return (await fixture.request(method, path, body, keyOf(user))).status;
    },
  };
}
