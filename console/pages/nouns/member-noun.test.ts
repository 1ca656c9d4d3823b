import { expect, test } from "vitest";
import type { Member, TeamRow } from "../../../supervisor/gateway/rows.ts";
import { viewMembers } from "./member-noun.ts";

test("a member with a generated id is named by the email address, and the master key is explained", () => {
  const id = "1f3a9c52-8a51-4e8e-9f0c-5a4c2d7b6e10";
  const emails: Readonly<Record<string, string>> = {
    [id]: "anna@example.org",
    ben: "ben@example.org",
  };
  const users = [id, "ben", "default_user_id"];
  const row = {
    members_with_roles: users.map((user_id) => ({
      user_id,
      user_email: emails[user_id] ?? null,
      role: "user",
    })),
  } as TeamRow;
  const members = users.map(
    (user_id) =>
      ({
        user_id,
        role: "user",
        spend: 0,
        budget_in_force: null,
        budget_reset_at: null,
      }) as Member,
  );
  const { rows } = viewMembers({ id: "t", row, members }, 0, "UTC");
  expect(rows.map(([name]) => name)).toMatchObject([
    { text: "anna@example.org", note: "" },
    { text: "ben", note: "ben@example.org" },
    { text: "default_user_id", note: "the master key" },
  ]);
});
