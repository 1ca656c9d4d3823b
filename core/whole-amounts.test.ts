import { expect, test } from "vitest";
import { keepAmountsWhole } from "./whole-amounts.ts";

test("amounts in headings and notes do not break, without the punctuation after them", () => {
  expect(
    keepAmountsWhole(
      '<h1 tabindex="-1">$ 1,051.90 so far: 3.8 % less.</h1><p>$ 2.00</p>',
    ),
  ).toBe(
    '<h1 tabindex="-1"><span class="nowrap">$ 1,051.90</span> so far: <span class="nowrap">3.8 %</span> less.</h1><p>$ 2.00</p>',
  );
  const within = '<small title="of $ 5.00">a</small>';
  expect(keepAmountsWhole(within)).toBe(within);
  expect(keepAmountsWhole("10 % <small>of $ 9,000,000.00</small>")).toBe(
    '10 % <small>of <span class="nowrap">$ 9,000,000.00</span></small>',
  );
  expect(keepAmountsWhole("<b>$ 6 of $ 5 spent</b><br>$ 1")).toBe(
    '<b><span class="nowrap">$ 6</span> of <span class="nowrap">$ 5</span> spent</b><br>$ 1',
  );
  expect(keepAmountsWhole("<small>(resets 1 Dec 2027, 00:00)</small>")).toBe(
    '<small>(resets <span class="nowrap">1 Dec 2027, 00:00</span>)</small>',
  );
  expect(keepAmountsWhole("<h1>anna has $ 5.</h1>")).toBe(
    '<h1>anna has <span class="nowrap">$ 5</span>.</h1>',
  );
});

test("a note with digits that take minutes if an amount may have any length is shown", () => {
  const note = `<small>Last failure: 500 ${"1".repeat(200_000)}</small>`;
  expect(keepAmountsWhole(note)).toBe(note);
});
