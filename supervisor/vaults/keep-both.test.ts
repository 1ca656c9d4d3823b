import { expect, test } from "vitest";
import { canKeepBoth, copyName, shownWithText } from "./keep-both.ts";

test.each([
  ["Trips/Plan.md", "Trips/Plan (conflict 3fa2b1).md"],
  ["no-ending", "no-ending (conflict 3fa2b1)"],
  ["a.b/c", "a.b/c (conflict 3fa2b1)"],
  [".hidden", ".hidden (conflict 3fa2b1)"],
  ["x.tar.gz", "x.tar (conflict 3fa2b1).gz"],
])("a copy of %s is %s", (path, copy) => {
  expect(copyName(path, "3fa2b1")).toBe(copy);
});

const version = { deleted: false };

test("only notes with two readable versions, whose id is their path, can be kept twice", () => {
  const two = [version, version];
  expect(canKeepBoth("trips/note.md", "Trips/Note.md", two)).toBe(true);
  expect(canKeepBoth("/_note.md", "_note.md", two)).toBe(true);
  const one = [version, { deleted: true }];
  expect(canKeepBoth("note.md", "note.md", one)).toBe(false);
  expect(canKeepBoth("f:3c5e", "note.md", two)).toBe(false);
  expect(canKeepBoth("f:3c5e", null, two)).toBe(false);
  const settings = "ix:phone/app.json";
  expect(canKeepBoth(settings, settings, two)).toBe(false);
});

test("a note that cannot be kept twice keeps its conflict", () => {
  const leaf = (rev: string, path: string, deleted = false) => ({
    _id: path,
    _rev: rev,
    path,
    deleted,
  });
  expect(() =>
    shownWithText([leaf("1-a", "/\\:%=a"), leaf("1-b", "/\\:%=b")], "1-a", "x"),
  ).toThrow("is encrypted");
  expect(() =>
    shownWithText([leaf("1-a", "n.md"), leaf("1-b", "n.md", true)], "1-a", "x"),
  ).toThrow("cannot be notes of their own");
  // A deleted version is shown, yet two others have content.
  const leaves = [
    leaf("1-a", "n.md", true),
    leaf("1-b", "n.md"),
    leaf("1-c", "n.md"),
  ];
  expect(shownWithText(leaves, "1-a", "n.md")).toBe("1-b");
  expect(shownWithText(leaves, "1-c", "n.md")).toBe("1-c");
});
