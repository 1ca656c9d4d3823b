import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openMirrorGit } from "./mirror-git.ts";

test("a vault's .gitattributes neither changes what is committed, nor runs filters, nor ends the commits", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-mirror-git-"));
  const run = (...words: readonly string[]): string =>
    execFileSync("git", ["-C", directory, ...words], { encoding: "utf8" });
  const windows = "one\r\ntwo\r\n";
  try {
    run("init", "--quiet");
    run("config", "filter.upper.clean", "tr a-z A-Z");
    writeFileSync(
      join(directory, ".gitattributes"),
      "* text=auto ident\n*.md filter=upper\n*.txt working-tree-encoding=UTF-16\n",
    );
    for (const name of ["a.md", "a.txt"]) {
      writeFileSync(join(directory, name), windows);
    }
    for (const _start of [1, 2]) {
      const git = await openMirrorGit(directory, "notes", Date.now);
      await git.commit();
    }
    expect([run("show", "HEAD:a.md"), run("show", "HEAD:a.txt")]).toEqual([
      windows,
      windows,
    ]);
    expect(run("log", "--format=%s").trim().split("\n")).toHaveLength(1);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("commits go into the folder's repository, whichever one variables of git name, and no other variable is passed on", async () => {
  const place = mkdtempSync(join(tmpdir(), "hearth-mirror-git-"));
  const [directory, other] = [join(place, "vault"), join(place, "other")];
  const run = (at: string, ...words: readonly string[]): string =>
    execFileSync("git", ["-C", at, ...words], { encoding: "utf8" });
  try {
    [directory, other].forEach((path) => mkdirSync(path));
    run(other, "init", "--quiet");
    writeFileSync(join(directory, "a.md"), "one");
    vi.stubEnv("GIT_DIR", join(other, ".git"));
    vi.stubEnv("GIT_AUTHOR_NAME", "a secret");
    const git = await openMirrorGit(directory, "notes", Date.now);
    await git.commit();
    vi.unstubAllEnvs();
    expect(run(directory, "log", "--format=%an")).toBe("Hearth\n");
    expect(run(other, "count-objects")).toMatch(/^0 objects/);
  } finally {
    vi.unstubAllEnvs();
    rmSync(place, { recursive: true, force: true });
  }
});
