import { expect, test } from "vitest";
import { readAuditChoice } from "./audit-choice.ts";
import { readAudit } from "./audit-reader.ts";

const KITCHEN = "f8715543-d338-4420-bc40-1aa69200f76d";
const GONE = "833a28c8-8d1f-4e30-bb43-c881f8635a69";

const limits = {
  spend: 0,
  max_budget: null,
  budget_in_force: null,
  budget_duration: null,
  budget_reset_at: null,
  rpm_limit: null,
  tpm_limit: null,
  max_parallel_requests: null,
  models: [],
  created_by: "anna",
  created_at: "2026-11-01T00:00:00Z",
};

function entry(type: string, id: string, after: object) {
  return {
    id: 1,
    at: "2026-11-28T01:29:00Z",
    actor: "anna",
    action: "created",
    object_type: type,
    object_id: id,
    before: null,
    after,
  };
}

test("teams in changes and members have names; a deleted team keeps its id", async () => {
  const audit = [
    entry("key", "ab", { key_alias: "phone", team_id: KITCHEN }),
    entry("key", "cd", { key_alias: "old", team_id: GONE }),
    entry("member", `${KITCHEN}/ben`, { team_id: KITCHEN, user_id: "ben" }),
    entry("team", KITCHEN, { team_id: KITCHEN, team_alias: "Kitchen" }),
  ];
  const teams = [
    {
      ...limits,
      team_id: KITCHEN,
      team_alias: "Kitchen",
      team_member_budget: null,
      blocked: false,
      members_with_roles: [],
    },
  ];
  const api = {
    ask: async (_method: string, path: string) =>
      path.startsWith("/audit") ? audit : { teams, total: 1, total_pages: 1 },
  };
  const read = await readAudit(
    api as unknown as Parameters<typeof readAudit>[0],
    readAuditChoice({}),
    50,
  );
  expect(read.map(({ object, changes }) => [object, changes])).toEqual([
    ["phone", ["Name: phone", "Team: Kitchen"]],
    ["old", ["Name: old", `Team: ${GONE}`]],
    ["ben in Kitchen", ["Team: Kitchen", "User: ben"]],
    ["Kitchen", ["Team alias: Kitchen"]],
  ]);
});
