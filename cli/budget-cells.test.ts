import { expect, test } from "vitest";
import { budgetCells } from "./budget-cells.ts";

test("a reset is shown in the zone of this machine", () => {
  const nextYear = new Date(new Date().getFullYear() + 1, 11, 1);
  const cells = budgetCells({
    spend: 1,
    budget_in_force: 4,
    budget_reset_at: nextYear.toISOString(),
  });
  expect(cells.map(({ text }) => text)).toEqual([
    "$ 1.00 of $ 4.00",
    "25 %",
    `1 Dec ${nextYear.getFullYear()}, 00:00`,
  ]);
});
