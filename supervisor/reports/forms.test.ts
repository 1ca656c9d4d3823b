import { expect, test } from "vitest";
import {
  HOSTILE_NAMES,
  noHealth,
  noSpend,
  usualHealth,
  usualSpend,
} from "../../test/supervisor/report-samples.ts";
import { choosePeriod, type PeriodChoice } from "./period.ts";
import { renderReport } from "./render.ts";
import type { SpendReport } from "./spend-report.ts";

test("the page is one file without scripts or external resources, and shows the verdict first", () => {
  const html = renderReport(usualSpend(), "html");
  expect(html).toContain(
    '<h1><span class="nowrap">$ 56.45</span> in November 2026, so far: <span class="nowrap">12 %</span> less than October by this day.</h1>',
  );
  expect(html).toContain(
    "<title>✕ $ 56.45 in November 2026, so far: 12 % less than October by this day. · Hearth</title>",
  );
  expect(html).not.toMatch(
    /<script|\son\w+=|@import|url\(|<iframe|<link rel="style/,
  );
  const addresses = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(
    ([, address = ""]) => address,
  );
  expect(addresses.every((address) => address.startsWith("data:"))).toBe(true);
});

test("every chart has a text alternative and a table of its numbers, with colours of the stylesheet", () => {
  for (const report of [usualSpend(), usualHealth()]) {
    const html = renderReport(report, "html");
    const charts =
      html.match(/<svg viewBox="0 26 480 212"[\s\S]*?<\/svg>/g) ?? [];
    expect(charts).toHaveLength(2);
    for (const chart of charts) {
      expect(chart).toMatch(/role="img" aria-label="[^"]{20,}"/);
      expect(chart).not.toMatch(/#[0-9a-f]{3,6}\b|style=|class=/);
    }
    expect(html.match(/Show table/g)).toHaveLength(2);
  }
});

test("an empty report explains itself instead of showing empty tables", () => {
  const spend = renderReport(noSpend(), "html");
  expect(spend).toContain("No calls in November 2026, so far.");
  // It may be read on any machine, where a local address would be wrong.
  expect(spend).not.toMatch(/curl|127\.0\.0\.1/);
  expect(spend).not.toContain("<table>");
  expect(renderReport(noSpend(), "text")).toContain("Nothing needs attention.");
  expect(renderReport(noHealth(), "html")).toContain("hearth config");
});

test("hostile names are text in every format", () => {
  const spend = usualSpend(HOSTILE_NAMES);
  for (const report of [spend, usualHealth(HOSTILE_NAMES)]) {
    const html = renderReport(report, "html");
    expect(html).not.toMatch(/<script|<img|<%|display:none}<\/style>/);
    expect(html).toContain("&lt;script&gt;");
    expect(html).not.toContain("\u202e");
    expect(html.match(/<style>/g)).toHaveLength(1);
    expect(renderReport(report, "text")).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u202e]/,
    );
  }
  const csv = renderReport(spend, "csv");
  expect(csv).toContain(`"'=HYPERLINK(""http://evil"",""x"")"`);
  expect(csv).not.toMatch(/(^|,)"?[=+@]/m);
  expect(JSON.parse(renderReport(spend, "json"))).toEqual(spend);
});

test("of a thousand keys the most expensive are displayed, the others are collapsed, and every format stays readable", () => {
  const names = Array.from({ length: 1000 }, (_, at) => `key-${at}`);
  const report = usualSpend(names);
  const html = renderReport(report, "html");
  expect(html).toContain("<summary>and 988 more</summary>");
  expect(html.length).toBeLessThan(1_000_000);
  expect(renderReport(report, "text")).toContain("and 980 more");
  const csv = renderReport(report, "csv");
  expect(
    csv.split("\r\n").filter((line) => line.startsWith("key,")),
  ).toHaveLength(1000);
});

test("the rows of the CSV add up to its total, and all have the same number of fields", () => {
  const csv = renderReport(usualSpend(), "csv");
  const rows = csv
    .trimEnd()
    .split("\r\n")
    .map((line) => line.match(/(?<=^|,)("(?:[^"]|"")*"|[^,]*)/g) ?? []);
  const head: readonly string[] = rows[0] ?? [];
  const column = (name: string) => head.indexOf(name);
  const spendOf = (table: string) =>
    rows
      .filter(([first]) => first === table)
      .reduce((sum, row) => sum + Number(row[column("spend")]), 0);
  expect(spendOf("day")).toBeCloseTo(spendOf("total"), 9);
  expect(new Set(rows.map((row) => row.length)).size).toBe(1);
});

test.each<[string, Partial<SpendReport>, string]>([
  ["more", { change: 0.5 }, "50 % more than October by this day"],
  ["the same", { change: 0.0001 }, "as much as October by this day"],
  [
    "many times as much",
    { change: 11 },
    "12 times as much as October by this day",
  ],
  ["nothing before", { change: null }, "$ 56.45 in November 2026, so far.\n"],
])("spend against the month before: %s", (_, fields, words) => {
  expect(renderReport({ ...usualSpend(), ...fields }, "text")).toContain(words);
});

test.each<[PeriodChoice, string, string]>([
  [{ unit: "day", complete: false }, "on 1 Jun 2026, so far", "1 Jun 2026"],
  [{ unit: "day", complete: true }, "on 31 May 2026:", "31 May 2026"],
  [
    { unit: "day", complete: false, since: "1d" },
    "on 1 Jun 2026, so far",
    "1 Jun 2026",
  ],
  [
    { unit: "week", complete: false },
    "in the week from 1 Jun 2026",
    "1 Jun 2026",
  ],
  [{ unit: "month", complete: false }, "in June 2026, so far", "1 Jun 2026"],
  [
    { unit: "month", complete: true },
    "in May 2026:",
    "1 May 2026 to 31 May 2026",
  ],
])("a report of %j says which days it is of", (choice, verdict, days) => {
  // A Monday.
  const period = choosePeriod(choice, "2026-06-01");
  const page = renderReport({ ...usualSpend(), period }, "html");
  expect(page).toContain(verdict);
  expect(page).toContain(`<p>${days}</p>`);
});

test("the text lists what needs attention, with the next step", () => {
  const text = renderReport(usualHealth(), "text");
  expect(text).toContain(
    "2 incidents in the week from 9 Nov 2026; the longest took 12 min 32 s.",
  );
  expect(text).toContain("▲ disk: less than 10 % is free\n  df -h");
  expect(renderReport(usualSpend(), "text")).toContain(
    "✕ key laptop has used 105 % of its budget ($ 20.00 of $ 19.00).",
  );
});

test("only a budget that resets suggests to wait for its reset", () => {
  const report = usualSpend();
  const withReset = (resetsAt: string | null) =>
    renderReport(
      {
        ...report,
        budgets: report.budgets
          .slice(0, 1)
          .map((budget) => ({ ...budget, resetsAt })),
      },
      "text",
    );
  const advice = "  raise it on page Keys of the console";
  expect(withReset("2026-11-30T23:00:00.000Z")).toContain(
    `${advice}, or wait for the next reset\n`,
  );
  expect(withReset(null)).toContain(`${advice}\n`);
});
