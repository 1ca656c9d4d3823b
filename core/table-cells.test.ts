import { expect, test } from "vitest";
import { fitTables } from "./table-cells.ts";

const row = (...cells: readonly string[]) => `<tr>${cells.join("")}</tr>`;
const number = (text: string) => `<td class="num">${text}</td>`;
const head = (...titles: readonly string[]) =>
  `<thead>${row(...titles.map((title) => `<th scope="col" class="num">${title}</th>`))}</thead>`;

test("cells of a wide table carry the title of their column", () => {
  const table = `<table class="named">${head(
    "Name",
    '<a href="/x">Spent <span aria-hidden="true">▾</span></a>',
    "Used &amp; left",
  )}<tbody>${row('<th scope="row">anna</th>', number("$ 1.00"), number("3 <b>%</b>"))}</tbody></table>`;
  const fitted = fitTables(`<p>before</p>${table}`);
  expect(fitted).toContain('<p>before</p><table class="cards named">');
  expect(fitted).toContain('<th scope="row">anna</th>');
  expect(fitted).toContain('<td class="num" data-label="Spent">$ 1.00</td>');
  expect(fitted).toContain('data-label="Used &amp; left">3 <b>%</b></td>');
});

test("columns of numbers without any value are left out, from head to foot", () => {
  const table = `<table>${head("Model", "Calls", "Failed", "Spend", "Share")}<tbody>${row(
    '<th scope="row">0</th>',
    number("3"),
    number("0"),
    number("$ 0.00"),
    number("0 %"),
  )}${row('<th scope="row">b</th>', number("0"), number(""), number("$ 0.10"), number("–"))}</tbody><tfoot>${row(
    '<th scope="row">Total</th>',
    number("3"),
    number("<b>0</b>"),
    number("$ 0.10"),
    number("0 %"),
  )}</tfoot></table>`;
  const fitted = fitTables(table);
  expect(fitted.match(/>(Model|Calls|Failed|Spend|Share)</g)).toEqual([
    ">Model<",
    ">Calls<",
    ">Spend<",
  ]);
  expect(fitted.match(/<t[hd]\b/g)).toHaveLength(12);
  expect(fitted).not.toContain("Failed");
});

test("an email address breaks after its @, but no attribute does", () => {
  const table = `<table>${head("A", "B")}<tbody>${row('<th><a href="/users?id=anna@example.org">anna@example.org</a></th>', "<td>@ home</td>")}</tbody></table>`;
  expect(fitTables(table)).toContain(
    '<a href="/users?id=anna@example.org">anna@<wbr>example.org</a></th><td>@ home</td>',
  );
});

test("a table of many columns is marked", () => {
  const titles = ["A", "B", "C", "D", "E", "F"];
  const table = `<table>${head(...titles)}<tbody>${row(...titles.map(() => number("1")))}</tbody></table>`;
  expect(fitTables(table)).toContain('<table class="cards many">');
});

test("the sorted column stays, and so do tables without rows", () => {
  const sorted = `<table><thead><tr><th scope="col">A</th><th scope="col" class="num" aria-sort="descending">B</th></tr></thead><tbody>${row("<th>a</th>", number("0"))}</tbody></table>`;
  expect(fitTables(sorted)).toBe(sorted);
  const empty = `<table>${head("A", "B")}<tbody></tbody></table>`;
  expect(fitTables(empty)).toBe(empty);
});

test("narrow tables, tables without titles and tables with spanning cells stay as they are", () => {
  for (const table of [
    `<table>${head("A", "B")}<tbody>${row("<th>a</th>", number("1"))}</tbody></table>`,
    `<table><tbody>${row("<th>a</th>", number("0"), number("0"))}</tbody></table>`,
    `<table>${head("A", "B", "C")}<tbody><tr><td colspan="3">0</td></tr></tbody></table>`,
  ]) {
    expect(fitTables(table)).toBe(table);
  }
});
