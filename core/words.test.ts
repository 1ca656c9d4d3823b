import { expect, test } from "vitest";
import {
  ago,
  ahead,
  axisMoney,
  clock,
  counted,
  countTitle,
  daysFrom,
  isDay,
  listed,
  moment,
  momentFrom,
  money,
  percent,
  readable,
  secondsFrom,
  shortened,
  withoutCapital,
} from "./words.ts";

test.each([
  [0, "$ 0.00"],
  [41.55, "$ 41.55"],
  [1234.5, "$ 1,234.50"],
  [0.01, "$ 0.01"],
  [0.00034, "$ 0.00034"],
  [0.00001, "$ 0.00001"],
  [1e-13, "$ 0.00"],
])("%d dollars are %s", (dollars, text) => {
  expect(money(dollars)).toBe(text);
});

test.each([
  [0, "0"],
  [20_000, "$ 20,000"],
  [2.5, "$ 2.5"],
  [0.000_05, "$ 0.00005"],
])("%d dollars are %s at an axis", (dollars, text) => {
  expect(axisMoney(dollars)).toBe(text);
});

test.each([
  [1, "100 %"],
  [0.999_99, "99.99 %"],
  [0.9994, "99.94 %"],
  [0.34, "34 %"],
  [0.0041, "0.4 %"],
  [0, "0 %"],
  [-0, "0 %"],
  [0.0999, "10 %"],
  [0.000_4, "< 0.1 %"],
  [-0.000_4, "> -0.1 %"],
  [-0.504, "-50 %"],
  [12.345, "1,235 %"],
  // Sums of ten tenths.
  [0.999_999_999_999_999_9, "100 %"],
  [1e-17, "0 %"],
])("a share of %d is %s", (share, text) => {
  expect(percent(share)).toBe(text);
});

test.each([
  [counted(0, "call"), "0 calls"],
  [counted(1, "call"), "1 call"],
  [counted(2_400, "call"), "2,400 calls"],
  [counted(2, "line is", "lines are"), "2 lines are"],
  [countTitle(0, "call"), "No calls"],
  [countTitle(1, "call"), "1 call"],
  [listed([]), ""],
  [listed(["gateway"]), "gateway"],
  [listed(["gateway", "notes"]), "gateway and notes"],
  [listed(["gateway", "notes", "redis"]), "gateway, notes and redis"],
  [shortened("gateway", 7), "gateway"],
  [shortened("gateway", 4), "gate…"],
])("%s", (text, expected) => {
  expect(text).toBe(expected);
});

test("bidirectional control characters are removed from a name", () => {
  expect(readable("anna\u202e 🔥\u2067 مرحبا")).toBe("anna 🔥 مرحبا");
});

test("times are in the operator's zone, distances in words", () => {
  const at = Date.UTC(2026, 10, 21, 23, 30);
  expect(moment(at, "Europe/Berlin")).toBe("22 Nov, 00:30");
  expect(clock(at, "UTC")).toBe("23:30");
  expect(ago(at, at + 480_000)).toBe("8 min ago");
  expect(ago(at, at)).toBe("just now");
  expect(ahead(at + 61_200_000, at)).toBe("in 17 h");
  expect(ahead(at, at)).toBe("now");
});

test.each([
  ["2026-11-21", true],
  ["2028-02-29", true],
  ["2026-02-29", false],
  ["2026-02-30", false],
  ["2026-13-01", false],
  ["2026-11-21T00:00:00Z", false],
  ["yesterday", false],
  ["", false],
])("%s is a day of the calendar: %s", (text, expected) => {
  expect(isDay(text)).toBe(expected);
});

test("a moment more than half a year away has its year", () => {
  const now = Date.UTC(2026, 10, 29);
  expect([
    momentFrom(now, Date.UTC(2027, 0, 3, 18), "UTC"),
    momentFrom(now, Date.UTC(2028, 0, 3, 18), "UTC"),
    momentFrom(now, Date.UTC(2025, 10, 29), "UTC"),
    secondsFrom(now, Date.UTC(2026, 10, 28), "UTC"),
    secondsFrom(now, Date.UTC(2025, 10, 29), "UTC"),
  ]).toEqual([
    "3 Jan, 18:00",
    "3 Jan 2028, 18:00",
    "29 Nov 2025, 00:00",
    "28 Nov, 00:00:00",
    "29 Nov 2025, 00:00:00",
  ]);
});

test.each([
  ["This user already exists.", "this user already exists."],
  ["A key is required.", "a key is required."],
  ["OpenAI does not answer.", "OpenAI does not answer."],
  ["Postgres is down.", "Postgres is down."],
  ["`models` must be a list.", "`models` must be a list."],
])("%s continues a sentence as %s", (sentence, continued) => {
  expect(withoutCapital(sentence)).toBe(continued);
});

test("days from one to another include both, also across a change of the clock", () => {
  expect(daysFrom("2026-10-24", "2026-10-26")).toEqual([
    "2026-10-24",
    "2026-10-25",
    "2026-10-26",
  ]);
  expect(daysFrom("2026-02-28", "2026-03-01")).toHaveLength(2);
  expect(daysFrom("2026-11-21", "2026-11-21")).toEqual(["2026-11-21"]);
});
