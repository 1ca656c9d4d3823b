import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { renderReportPage } from "../../supervisor/reports/render-page.ts";
import {
  HOSTILE_NAMES,
  usualHealth,
  usualSpend,
} from "../supervisor/report-samples.ts";
import { DESK, openBrowser, openPage } from "./browser.ts";
import { fitEveryScreen } from "./every-screen.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

test.each([
  ["report-spend", usualSpend()],
  ["report-health", usualHealth()],
  ["report-hostile", usualSpend(HOSTILE_NAMES)],
] as const)("%s fits every screen, without scripts", async (name, report) => {
  const html = renderReportPage(report);
  const { page, complaints } = await openPage(browser, DESK);
  await page.setContent(html);
  expect(await page.locator("script, img").count()).toBe(0);
  await fitEveryScreen(page, name);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("amounts are not broken on the narrowest screen", async () => {
  const usual = usualSpend();
  const { page } = await openPage(browser, { width: 320, scheme: "light" });
  await page.setContent(
    renderReportPage({
      ...usual,
      totals: { ...usual.totals, spend: 0.000067 },
    }),
  );
  const lines = await page.evaluate<readonly (readonly [string, number])[]>(`
    Array.from(document.querySelectorAll(".figures dd"), (each) => {
      const range = document.createRange();
      range.selectNode(each.firstChild);
      return [range.toString(), range.getClientRects().length];
    })`);
  expect(lines).toContainEqual(["$ 0.000067", 1]);
  expect(lines.filter(([, count]) => count !== 1)).toEqual([]);
  await page.context().close();
});
