import { expect, test } from "vitest";
import { sentencesOf, textOf } from "./failure.ts";

test.each([
  ["EACCES", "/data/notes is not accessible to this user"],
  ["EEXIST", "cannot create or read /data/notes (taken)"],
])("%s names the path, which may be outside the home", (code, start) => {
  const error = Object.assign(new Error("taken"), { code });
  const [sentence = ""] = sentencesOf(error, "/data/notes");
  expect(sentence).toContain(start);
  expect(sentence).toContain("choose another path (HEARTH_HOME sets");
});

test("a file system that an error made read-only is no matter of permissions", () => {
  const error = Object.assign(new Error("read-only"), { code: "EROFS" });
  expect(sentencesOf(error, "/data/notes")).toEqual([
    "the file system of /data/notes is read-only: if it was not mounted so, check the disk (`dmesg`), then mount it writable.",
  ]);
});

test.each(["ENOSPC", "EROFS"])(
  "%s names the file that a copy writes, not the one that it reads",
  (code) => {
    const paths = { path: "/checkout/node", dest: "/data/releases/node" };
    const error = Object.assign(new Error("full"), { code, ...paths });
    expect(sentencesOf(error)[0]).toContain(" of /data/releases/node");
  },
);

test("a read-only file system is named where Node gives an error of rmSync no code", () => {
  const message = ", Unknown error: Read-only file system '/data/run.json'";
  const error = Object.assign(new Error(message), {
    code: "",
    path: "/data/run.json",
  });
  expect(sentencesOf(error)[0]).toContain(
    "the file system of /data/run.json is read-only",
  );
  expect(textOf(error)).toBe("Read-only file system '/data/run.json'");
});
