import { afterEach, expect, test, vi } from "vitest";
import {
  alignColumns,
  alignTable,
  foldLine,
  complain,
  paint,
  print,
  printPart,
} from "./terminal.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a sentence, an error or an answer of a model cannot move the cursor, hide text or write to the clipboard", () => {
  const written: string[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((text) => {
      written.push(String(text));
      return true;
    });
  }
  const hostile = "\x1b]52;c;cm0=\x07\x1b[2J\x1b[8m\r\u009b2Jx";
  const harmless = "\uFFFD]52;c;cm0=\uFFFD\uFFFD[2J\uFFFD[8m\uFFFD\uFFFD2Jx";
  print(`Keys: ${hostile}`);
  printPart(hostile);
  complain([`Key ${hostile} is blocked.`]);
  print("\x1b[1mbold\x1b[22m\ttab\nline");
  expect(written).toEqual([
    `Keys: ${harmless}\n`,
    harmless,
    `${paint("bad", "hearth:", process.stderr)} Key ${harmless} is blocked.\n`,
    "\x1b[1mbold\x1b[22m\ttab\nline\n",
  ]);
});

test("a name in a table cannot move the cursor, start a line or reverse the text around it", () => {
  const rows = ["\x1b[2Jred", "two\nlines", "\u202edesrever", "é"].map(
    (text) => [{ text }, { text: "next" }],
  );
  expect(alignColumns(rows)).toEqual([
    "\uFFFD[2Jred    next",
    "two\uFFFDlines  next",
    "desrever   next",
    "é          next",
  ]);
});

test("ideographs and emoji take two columns, letters of several code points one place", () => {
  const rows = ["研究", "👩‍👩‍👧‍👦", "e\u0301", "한글", "abcd"].map((text) => [
    { text },
    { text: "|" },
  ]);
  expect(alignColumns(rows)).toEqual([
    "研究  |",
    "👩‍👩‍👧‍👦    |",
    "e\u0301     |",
    "한글  |",
    "abcd  |",
  ]);
});

test("where a table is wider than the terminal, its widest columns are cut", () => {
  const rows = [
    ["short", "a".repeat(30), "b".repeat(40), "12"],
    ["x", "研究".repeat(10), "b", "3"],
  ].map((row) => row.map((text) => ({ text })));
  expect(alignColumns(rows, 53)).toEqual([
    `short  ${"a".repeat(19)}…  ${"b".repeat(19)}…  12`,
    `x      ${"研究".repeat(4)}研…   ${"b".padEnd(20)}  3`,
  ]);
  const numbers = [
    { text: "x".repeat(20) },
    { text: "$ 0.000000000001", right: true },
  ];
  expect(alignColumns([numbers], 30)).toEqual([
    `${"x".repeat(11)}…  $ 0.000000000001`,
  ]);
  expect(alignColumns(rows, Infinity)[0]).toContain("b".repeat(40));
});

test("a line that is wider than the terminal continues below its last column", () => {
  const line =
    "  hearth status   Show the state of everything on this machine.";
  expect(foldLine(line, Infinity)).toBe(line);
  expect(foldLine(line, 50).split("\n")).toEqual([
    "  hearth status   Show the state of everything on",
    "                  this machine.",
  ]);
  expect(foldLine(line, 36).split("\n")).toEqual([
    "  hearth status",
    "    Show the state of everything on",
    "    this machine.",
  ]);
  expect(foldLine("Show the state of everything.", 20).split("\n")).toEqual([
    "Show the state of",
    "everything.",
  ]);
});

test("a table leaves out its least useful columns where the terminal is too narrow, and no others", () => {
  const row = ["hearth-echo-large", "12.5", "2026-12-01"].map((text) => ({
    text,
    right: text === "12.5",
  }));
  const table = (width: number) =>
    alignTable(["alias", "p50", "resets"], [row], ["resets", "p50"], width);
  expect(table(30)).toEqual([
    "alias         p50   resets",
    "hearth-echo…  12.5  2026-12-01",
  ]);
  expect(table(20)).toEqual(["alias           p50", "hearth-echo-l…  12.5"]);
  expect(table(12)).toEqual(["alias", "hearth-echo…"]);
  expect(table(5)).toEqual(["alias", "hearth-echo…"]);
});
