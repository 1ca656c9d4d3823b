import { expect, test } from "vitest";
import { readList, type ListQuery } from "./list-view.ts";
import { budgetedPage, budgetHeading } from "./noun-list.ts";

test.each([
  ["key", 0, 0, "No keys yet.", "none"],
  ["key", 1, 0, "1 key, within budget.", "ok"],
  ["user", 1237, 0, "1,237 users, none over budget.", "ok"],
  ["team", 1, 1, "The only team is over budget.", "warn"],
  ["user", 5, 1, "1 of 5 users is over budget.", "warn"],
  ["user", 6, 2, "2 of 6 users are over budget.", "warn"],
])("the heading of %ss, %i with %i over budget", (...given) => {
  const [noun, all, spent, title, look] = given;
  expect(budgetHeading(noun, all, spent, null)).toEqual({ title, look });
});

test.each([
  [0, "None of 5,015 keys matches the search."],
  [1, "1 of 5,015 keys matches the search."],
  [12, "12 of 5,015 keys match the search."],
])("the heading of a search with %i matches counts them", (found, title) => {
  expect(budgetHeading("key", 5015, 7, found)).toEqual({ title, look: "none" });
});

test("the heading of a search counts its users, the filters count all", async () => {
  const users = [
    { id: "anna", isSpent: true },
    { id: "bob", isSpent: false },
    { id: "carl", isSpent: false },
  ];
  const asked: ListQuery[] = [];
  const find = (query: ListQuery) => {
    asked.push(query);
    const rows = users.filter(
      ({ id, isSpent }) =>
        id.includes(query.search) && (query.state === "" || isSpent),
    );
    return Promise.resolve({ rows, total: rows.length, pages: 1 });
  };
  const show = (query: object) =>
    budgetedPage(
      "user",
      { list: "/users" },
      readList(query, ["created_at"], ["over_budget"]),
      find,
    );

  const page = await show({ search: "bob", page: "2" });
  expect(page).toMatchObject({
    title: "1 of 3 users matches the search.",
    look: "none",
    rows: [{ id: "bob" }],
    total: 1,
    empty: false,
    filters: [
      { word: "all", count: "3", current: true },
      { word: "over budget", count: "1", current: false },
    ],
  });
  expect(await show({ state: "over_budget" })).toMatchObject({
    title: "1 of 3 users is over budget.",
    rows: [users[0]],
  });
  // What is already read is not read again.
  asked.length = 0;
  expect((await show({})).total).toBe(3);
  expect(asked.map(({ state }) => state)).toEqual(["", "over_budget"]);
});
