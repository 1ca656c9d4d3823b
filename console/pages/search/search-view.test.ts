import { expect, test } from "vitest";
import { matching, MAX_HITS, viewSearch, type Hit } from "./search-view.ts";

const hit = (name: string, note = ""): Hit => ({ name, note, href: "/x" });

test("names and notes match in any case, names that start with the text first", () => {
  const { hits, total } = matching(
    [
      hit("robot", "owned by Anna"),
      hit("old-anna"),
      hit("ANNA-phone"),
      hit("ben"),
    ],
    "anna",
  );
  expect(hits.map(({ name }) => name)).toEqual([
    "ANNA-phone",
    "old-anna",
    "robot",
  ]);
  expect(total).toBe(3);
});

test("a long list is cut, and says how many it leaves out", () => {
  const found = matching(
    Array.from({ length: MAX_HITS + 2 }, (_, at) => hit(`job-${at}`)),
    "job",
  );
  expect(viewSearch("job", [{ title: "Jobs", found }])).toMatchObject({
    title: "10 results for “job”.",
    groups: [{ title: "Jobs", all: null, more: "2 more: type more letters." }],
  });
  expect(
    viewSearch("job", [{ title: "Jobs", found: { ...found, all: "/jobs" } }])
      .groups,
  ).toMatchObject([
    { all: { href: "/jobs", text: "Show all 10" }, more: null },
  ]);
});

test("a source that cannot be searched is named, and the others are shown", () => {
  const view = viewSearch("x", [
    { title: "Keys", found: { trouble: "The gateway does not answer." } },
    { title: "Users", found: { trouble: "The gateway does not answer." } },
    { title: "Pages", found: { hits: [], total: 0, all: null } },
    { title: "Jobs", found: { hits: [hit("x")], total: 1, all: null } },
  ]);
  expect(view).toMatchObject({
    title: "1 result for “x”.",
    look: "warn",
    troubles: ["Keys, Users not searched: The gateway does not answer."],
    groups: [{ title: "Jobs" }],
  });
});

test("without a match the heading says so", () => {
  expect(viewSearch("zzz", [])).toMatchObject({
    title: "No results for “zzz”.",
    look: "none",
    groups: [],
  });
  expect(viewSearch("", []).title).toBe("Search");
});
