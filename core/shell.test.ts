import { expect, test } from "vitest";
import { execute } from "./execute.ts";
import { shellQuoted } from "./shell.ts";

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
