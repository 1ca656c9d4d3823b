import { describe, expect, test } from "vitest";
import type { Payer } from "../../../supervisor/reports/payers.ts";
import { noSums } from "../../../supervisor/reports/sums.ts";
import { fieldsOf, linkTo, periodOf, readChoice } from "./spend-choice.ts";
import {
  filterAndSort,
  csvRows,
  FIGURE_COLUMNS,
  totalOf,
} from "./spend-table.ts";
import { viewControls } from "./spend-view.ts";

const TODAY = "2026-11-21";

function payer(name: string, change: Partial<Payer>): Payer {
  return {
    ...noSums,
    id: name.toLowerCase(),
    name,
    previous: 0,
    share: 0,
    ...change,
  };
}

describe("the period in an address", () => {
  test.each([
    ["", "2026-11-01", "2026-11-21", "2026-10-01", "2026-10-21"],
    ["period=today", TODAY, TODAY, "2026-11-20", "2026-11-20"],
    ["period=7d", "2026-11-15", TODAY, "2026-11-08", "2026-11-14"],
    [
      "period=last-month",
      "2026-10-01",
      "2026-10-31",
      "2026-09-01",
      "2026-09-30",
    ],
    [
      "from=2026-11-03&until=2026-11-05",
      "2026-11-03",
      "2026-11-05",
      "2026-10-31",
      "2026-11-02",
    ],
    ["from=2026-11-20", "2026-11-20", TODAY, "2026-11-18", "2026-11-19"],
    [
      "until=2026-11-20",
      "2026-11-20",
      "2026-11-20",
      "2026-11-19",
      "2026-11-19",
    ],
  ])("%s", (query, from, until, earlier, before) => {
    const choice = readChoice(Object.fromEntries(new URLSearchParams(query)));
    expect(periodOf(choice, TODAY)).toMatchObject({
      from,
      until,
      open: until === TODAY,
      previous: { from: earlier, until: before },
    });
  });
});

test("the form shows the days of a preset period, and invalid days as typed", () => {
  const preset = readChoice({ period: "7d" });
  expect(
    viewControls(preset, TODAY, periodOf(preset, TODAY)).dates,
  ).toMatchObject({ from: "2026-11-15", until: TODAY });
  const invalid = readChoice({ from: "2026-11-09", until: "2026-11-03" });
  expect(viewControls(invalid, TODAY, null).dates).toMatchObject({
    from: "2026-11-09",
    until: "2026-11-03",
  });
});

describe("the choice in an address", () => {
  test("takes defaults for invalid parameters", () => {
    const choice = readChoice({
      period: "ever",
      by: "moon",
      sort: "<b>",
      order: "left",
      page: "-3",
      find: ["a", "b"],
      pick: { a: 1 },
    });
    expect(fieldsOf(choice)).toEqual([]);
    expect(linkTo(choice)).toBe("/spend");
  });

  test("survives a round trip with any text", () => {
    const choice = readChoice({
      by: "key",
      sort: "requests",
      order: "up",
      find: "a&b=<ü>",
      pick: ["x", "", "x"],
      page: "4",
      from: "2026-11-01",
    });
    const { searchParams } = new URL(linkTo(choice), "http://localhost");
    const query = Object.fromEntries(
      [...searchParams.keys()].map((name) => [name, searchParams.getAll(name)]),
    );
    const single = Object.fromEntries(
      Object.entries(query).map(([name, all]) => [
        name,
        name === "pick" ? all : all[0],
      ]),
    );
    expect(readChoice(single)).toEqual(choice);
    expect(choice.pick).toEqual(["x", ""]);
  });
});

describe("the table", () => {
  const rows = [
    payer("Ada", { spend: 1, requests: 9, previous: 2 }),
    payer("Bert", { spend: 0.2, requests: 3 }),
    payer("bob", { spend: 0.1, requests: 3 }),
  ];
  const usual = { by: "user", sort: "spend", order: "down", find: "" } as const;
  const names = (all: readonly Payer[]) => all.map(({ name }) => name);

  test("is sorted by any column in both directions, with a stable order of equal rows", () => {
    expect(names(filterAndSort(rows, usual))).toEqual(["Ada", "Bert", "bob"]);
    expect(
      names(filterAndSort(rows, { ...usual, sort: "requests", order: "up" })),
    ).toEqual(["Bert", "bob", "Ada"]);
    expect(
      names(filterAndSort(rows, { ...usual, sort: "name", order: "up" })),
    ).toEqual(["Ada", "Bert", "bob"]);
  });

  test("sorts days in their order", () => {
    const days = [
      payer("9 Nov 2026", { id: "2026-11-09" }),
      payer("10 Nov 2026", { id: "2026-11-10" }),
    ];
    expect(
      names(filterAndSort(days, { ...usual, by: "day", sort: "name" })),
    ).toEqual(["10 Nov 2026", "9 Nov 2026"]);
  });

  test("shows matching rows only, and their total", () => {
    const found = filterAndSort(rows, { ...usual, find: "B" });
    expect(names(found)).toEqual(["Bert", "bob"]);
    expect(totalOf(found, 1.3)).toMatchObject({ spend: 0.3, requests: 6 });
  });

  test("has unformatted numbers as CSV", () => {
    const csv = csvRows(rows, FIGURE_COLUMNS.slice(0, 3), 1.3);
    expect(csv[0]).toEqual(["id", "name", "Spend", "Share", "Before"]);
    expect(csv.at(-1)).toEqual(["", "Total", 1.3, 1, 2]);
  });
});
