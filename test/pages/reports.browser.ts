import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  DESK,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
} from "./browser.ts";
import { startConsoleTestbed, type ConsoleTestbed } from "./console-testbed.ts";
import { takePicture } from "./every-screen.ts";

let browser: Browser;
let testbed: ConsoleTestbed;

beforeAll(async () => {
  browser = await openBrowser();
  testbed = await startConsoleTestbed({ services: ["notes"] });
});
afterAll(async () => {
  await browser.close();
  await testbed.stop();
});

test("a report is created by its job, listed, opened and downloaded", async () => {
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/reports/`);
  expect(await page.textContent("h1")).toBe("No reports yet.");
  await page.getByRole("link", { name: "health-report" }).click();
  await page.getByText("Run now…").click();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("heading", { name: "succeeded" }).waitFor();
  expect(await page.getByText("Open the report").count()).toBe(1);
  await page.goto(`${testbed.address}/reports/`);
  expect(await page.textContent("h1")).toBe("1 report.");
  const loaded = page.waitForEvent("download");
  await page.getByRole("link", { name: "csv" }).click();
  expect((await loaded).suggestedFilename()).toMatch(/^health-.*\.csv$/);
  await page.getByRole("rowheader").getByRole("link").click();
  expect(page.url()).toMatch(/health-.*\.html$/);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test.each([
  { width: 1280, scheme: "light" },
  { width: 360, scheme: "dark" },
  { width: 320, scheme: "light" },
] as const)("the page fits at $width, $scheme", async (screen) => {
  const { page, complaints } = await openPage(browser, screen);
  await page.goto(`${testbed.address}/reports/`);
  expect(await overflowOf(page)).toBe(0);
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, `reports-${screen.width}-${screen.scheme}`);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("without script a report of chosen days is created, and a failure is a page", async () => {
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/reports/`);
  await page.getByLabel("Report", { exact: true }).selectOption("health");
  await page.getByLabel("Period", { exact: true }).selectOption("since");
  await page.getByRole("button", { name: "Create report" }).click();
  await page.getByText("date is required").waitFor();
  await page.getByLabel("Since", { exact: true }).fill("2026-11-01");
  await page.getByLabel("Period", { exact: true }).selectOption("last-week");
  await page.getByRole("button", { name: "Create report" }).click();
  expect(await page.title()).toContain("the week from");
  await page.goto(`${testbed.address}/reports/`);
  await page.getByRole("button", { name: "Create report" }).click();
  await page.getByText("cannot read spend").waitFor();
  await page.getByRole("link", { name: "Go back" }).click();
  const answer = await page.goto(
    `${testbed.address}/reports/spend-2020-01-01.html`,
  );
  expect(answer?.status()).toBe(404);
  await page.getByText('Report "spend-2020-01-01.html" not found.').waitFor();
  await page.context().close();
});
