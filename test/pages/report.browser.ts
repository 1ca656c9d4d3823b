import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { renderReportPage } from "../../supervisor/reports/render-page.ts";
import {
  HOSTILE_NAMES,
  usualHealth,
  usualSpend,
} from "../supervisor/report-samples.ts";
import {
  DESK,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
  SCREENS,
  showOn,
} from "./browser.ts";
import { takePicture } from "./every-screen.ts";

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
  for (const screen of SCREENS) {
    await showOn(page, screen);
    expect(await overflowOf(page), screen.name).toBe(0);
    await takePicture(page, `${name}-${screen.name}`);
    if (screen.examined) {
      expect(await findViolations(page), screen.name).toEqual([]);
    }
  }
  expect(complaints).toEqual([]);
  await page.context().close();
});
