import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import {
  clippedTables,
  findViolations,
  openPage,
  overflowOf,
  DESK,
  SCREENS,
  showOn,
} from "./browser.ts";

/**
 * Opens a page and checks its heading, that the browser reports no errors and that no name became markup or turned text around; then on every screen
 * that nothing overflows, that no table is clipped with all details open, and that axe-core finds no violation. Pictures are
 * named after `name`.
 */
export async function checkEveryScreen(
  browser: Browser,
  address: string,
  {
    name,
    heading,
  }: { readonly name: string; readonly heading: string | RegExp },
): Promise<void> {
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(address);
  const words = await page.textContent("h1");
  if (typeof heading === "string") {
    expect(words).toBe(heading);
  } else {
    expect(words).toMatch(heading);
  }
  expect(await page.title()).toMatch(/^[●▲✕‖○] .* · Hearth$/u);
  expect(await page.locator("img").count()).toBe(0);
  expect(await page.locator("body").innerText()).not.toContain("\u202e");
  await fitEveryScreen(page, name);
  await page.locator("details").evaluateAll((all) => {
    for (const each of all) {
      each.setAttribute("open", "");
    }
  });
  for (const screen of SCREENS) {
    await showOn(page, screen);
    expect(await overflowOf(page), `${screen.name} overflows`).toBe(0);
    expect(await clippedTables(page), `${screen.name} clips`).toEqual([]);
  }
  expect(complaints, "errors in the browser").toEqual([]);
  await page.context().close();
}

/** Checks on every screen that an open page is not wider than the screen and accessible. Pictures are named after `name`. */
export async function fitEveryScreen(page: Page, name: string): Promise<void> {
  for (const screen of SCREENS) {
    await showOn(page, screen);
    expect(await overflowOf(page), `${screen.name} overflows`).toBe(0);
    await takePicture(page, `${name}-${screen.name}`);
    if (screen.examined) {
      expect(await findViolations(page), screen.name).toEqual([]);
    }
  }
}

/** Takes a picture, only when HEARTH_PICTURES names a directory; long pages are cut. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const directory = process.env["HEARTH_PICTURES"];
  if (directory === undefined || directory === "") {
    return;
  }
  mkdirSync(directory, { recursive: true });
  const { width, height } = await page.evaluate<{
    readonly width: number;
    readonly height: number;
  }>("({ width: innerWidth, height: document.documentElement.scrollHeight })");
  await page.screenshot({
    path: join(directory, `${name}.png`),
    fullPage: true,
    clip: { x: 0, y: 0, width, height: Math.min(height, 1340) },
  });
}
