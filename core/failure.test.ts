import { expect, test } from "vitest";
import { sentencesOf } from "./failure.ts";

test.each([
  ["EACCES", "/data/notes is not accessible to this user"],
  ["EEXIST", "cannot create or read /data/notes (taken)"],
])("%s names the path, which may be outside the home", (code, start) => {
  const error = Object.assign(new Error("taken"), { code });
  const [sentence = ""] = sentencesOf(error, "/data/notes");
  expect(sentence).toContain(start);
  expect(sentence).toContain("choose another path (HEARTH_HOME sets");
});
