import { expect, test } from "vitest";
import { execute } from "./execute.ts";
import { shellQuoted, shellWord } from "./shell.ts";

test.each(["", "two words", "it's", '$HOME `id` \\ "', "line\nbreak"])(
  "%j reaches a program as one word",
  async (text) => {
    const { stdout } = await execute("sh", [
      "-c",
      `printf '%s.' ${shellQuoted(text)}`,
    ]);
    expect(stdout).toBe(`${text}.`);
  },
);

test.each([
  ["anna@example.org", "anna@example.org"],
  ["2026/notes-1.md", "2026/notes-1.md"],
  ["anna's tablet", String.raw`'anna'\''s tablet'`],
  ["x; reboot", "'x; reboot'"],
  ["$(reboot)", "'$(reboot)'"],
  ["line\nbreak", "'line\nbreak'"],
  ["", "''"],
])("%j is copied as %s", (text, word) => {
  expect(shellWord(text)).toBe(word);
});
