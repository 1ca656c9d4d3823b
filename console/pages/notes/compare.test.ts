import { expect, test } from "vitest";
import { compareTexts, type Piece } from "./compare.ts";

const shown = (pieces: readonly Piece[] | null) =>
  pieces?.map(({ text, marked }) => (marked ? `[${text}]` : text)).join("") ??
  null;

function rowsOf(left: string, right: string) {
  const compared = compareTexts(left, right);
  if (compared.kind !== "rows") {
    return compared.kind;
  }
  return compared.rows.map((row) =>
    row.kind === "gap"
      ? `${row.lines} the same`
      : `${row.kind}: ${shown(row.left)} | ${shown(row.right)}`,
  );
}

test("differing words are marked in lines side by side", () => {
  expect(rowsOf("milk\ntwo eggs\n", "milk\nthree eggs\n")).toEqual([
    "same: milk | milk",
    "changed: [two] eggs | [three] eggs",
  ]);
});

test("a line of one version only has no counterpart", () => {
  expect(rowsOf("a\nb\nc", "a\nc")).toEqual([
    "same: a | a",
    "changed: [b] | null",
    "same: c | c",
  ]);
  expect(rowsOf("", "new")).toEqual(["changed: null | [new]"]);
  expect(rowsOf("x\ny", "z")).toEqual([
    "changed: [x] | [z]",
    "changed: [y] | null",
  ]);
});

test("of equal lines only those around a difference are shown", () => {
  const lines = Array.from({ length: 20 }, (_, at) => `line ${at}`);
  const changed = lines.with(10, "another");
  expect(rowsOf(lines.join("\n"), changed.join("\n"))).toEqual([
    "7 the same",
    ...[7, 8, 9].map((at) => `same: line ${at} | line ${at}`),
    "changed: [line 10] | [another]",
    ...[11, 12, 13].map((at) => `same: line ${at} | line ${at}`),
    "6 the same",
  ]);
});

test("line endings do not count as differences", () => {
  expect(rowsOf("a\nb", "a\nb\n")).toBe("same");
  expect(rowsOf("a\r\nb\r\n", "a\nb\n")).toBe("same");
});

test("many or long differences are truncated, and texts that take too long are not compared", () => {
  const many = (word: string) =>
    Array.from({ length: 200 }, (_, at) => `${word} ${at}`).join("\n");
  const compared = compareTexts(many("left"), many("right"));
  expect(compared).toMatchObject({ kind: "rows", cut: true });
  expect(compared.kind === "rows" && compared.rows.length).toBe(60);
  const [row] = rowsOf("x".repeat(100_000), "y") as readonly string[];
  expect(row?.length).toBeLessThan(400);
  const shuffled = (seed: number) =>
    Array.from({ length: 30_000 }, (_, at) => `${(at * seed) % 30_011}`).join(
      "\n",
    );
  expect(compareTexts(shuffled(7919), shuffled(104_729)).kind).toBe(
    "all-different",
  );
});
