import { expect, test } from "vitest";
import { parseIni } from "./ini.ts";

test("sections, comments, spaces and values with equals signs are read", () => {
  const text =
    '; comment\n[a]\nx = 1\n y=b=c \n\n# more\n[b]\nWWW-Authenticate=Basic realm="x"\n[a]\nz=3';
  expect(parseIni(text)).toEqual({
    a: { x: "1", y: "b=c", z: "3" },
    b: { "WWW-Authenticate": 'Basic realm="x"' },
  });
});

test.each([
  ["[a]\nx=1\nhunter2", "line 3 is neither a [section] nor a key = value"],
  ["x=1", "line 1 precedes the first [section]"],
  ["[a\nx=1", "line 1 is neither a [section] nor a key = value"],
])(
  "%j is rejected with its line number and without its text",
  (text, sentence) => {
    expect(() => parseIni(text)).toThrow(new Error(sentence));
  },
);
