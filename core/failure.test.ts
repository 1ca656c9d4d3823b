import { expect, test } from "vitest";
import { request } from "undici";
import { loggedError, sentencesOf, textOf } from "./failure.ts";

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

const SECRET = "pass\nword";

async function errorOf(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("no error");
}

const headers = { authorization: `Bearer ${SECRET}` };
const AT = "http://user:pa%20ss@127.0.0.1:1/";

test.each([
  ["a header", () => fetch("http://127.0.0.1:1/", { headers }), "a header has"],
  ["an address", () => fetch(AT), "http://127.0.0.1:1/"],
  ["an invalid address", () => fetch("http://user:pa/ss@[x/"), "Invalid URL"],
  ["the input of URL", () => new URL("redis://user:pa ss@[x/"), "Invalid URL"],
  ["a header of undici", () => request(AT, { headers }), "invalid"],
  ["a command", () => Promise.reject(failedCommand()), "WRONGPASS"],
])(
  "an error repeats no secret of %s, neither as text nor in a log",
  async (_, work, kept) => {
    const error = await errorOf(work);
    expect(textOf(error)).toContain(kept);
    const logged = JSON.stringify(loggedError(error));
    expect(logged).toContain(kept);
    expect(textOf(error) + logged).not.toMatch(/pa(ss|%20|\/| )|word/);
  },
);

/** As ioredis reports one. */
function failedCommand(): Error {
  const error = new Error("WRONGPASS invalid pair");
  return Object.assign(error, {
    command: { name: "auth", args: ["user", SECRET] },
  });
}

test("a log shows where an error happened, its code and its cause", () => {
  const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  expect(loggedError(new TypeError("fetch failed", { cause }))).toEqual({
    type: "TypeError",
    message: "fetch failed",
    stack: expect.stringContaining("failure.test.ts"),
    cause: {
      type: "Error",
      message: "refused",
      stack: expect.stringContaining("failure.test.ts"),
      code: "ECONNREFUSED",
    },
  });
  expect(loggedError("a sentence")).toBe("a sentence");
});
