import { expect, test } from "vitest";
import { alignColumns } from "./terminal.ts";

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
