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
