import { expect, test } from "vitest";
import { withCode } from "./html.ts";

test.each([
  ["Run `hearth <x>` again.", "Run <code>HEARTH &lt;X&gt;</code> again."],
  ["`a` and `b`", "<code>A</code> and <code>B</code>"],
  ["No code.", "No code."],
  ["A lone ` is text.", "A lone ` is text."],
])("%s is %s on a page", (sentence, markup) => {
  const { html } = withCode(sentence, (code) => code.toUpperCase());
  expect(html).toBe(markup);
});
