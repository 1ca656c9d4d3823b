import { expect, test } from "vitest";
import type { Attention, Subject } from "../../supervisor/status.ts";
import { countByPage, pageOf } from "./attention.ts";

const about = (topic: Subject["topic"], id: string | null = null) =>
  ({ about: { topic, id } }) as Attention;

test.each([
  [about("service", "gateway"), "/services/gateway"],
  [about("key", "0a1b"), "/keys/0a1b"],
  [about("key"), "/keys?state=over_budget"],
  [about("user", "anna@home"), "/users/user?id=anna%40home"],
  [about("user"), "/users?state=over_budget"],
  [about("team", "kitchen"), "/teams/team?id=kitchen"],
  [about("team"), "/teams?state=over_budget"],
  [about("organization", "acme"), "/"],
  [about("vault", "my notes"), "/notes/my%20notes"],
  [about("vault"), "/notes"],
  [about("job", "restore-drill"), "/jobs/restore-drill"],
  [about("supervisor"), "/"],
])("the page of %j is %s", (found, page) => {
  expect(pageOf(found)).toBe(page);
});

test("the navigation counts findings at the page where they belong; services are on the status page", () => {
  const counts = countByPage([
    about("service", "gateway"),
    about("supervisor"),
    about("key", "0a1b"),
    { ...about("key"), count: 5 },
    about("user", "anna"),
    about("team", "kitchen"),
    about("vault", "a"),
    about("vault", "b"),
    about("job", "compaction"),
  ]);
  expect(Object.fromEntries(counts)).toEqual({
    "/": 2,
    "/keys": 6,
    "/users": 1,
    "/teams": 1,
    "/notes": 2,
    "/jobs": 1,
  });
});
