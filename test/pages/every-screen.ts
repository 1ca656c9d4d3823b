import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import {
  clippedTables,
  findViolations,
  openPage,
  overflowOf,
  SCREENS,
} from "./browser.ts";

/** Together these cover every colour and layout. */
const EXAMINED = ["desk", "desk-dark", "phone"];

/**
 * Opens a page on every screen and checks its heading, that the browser reports no errors, that nothing overflows and no table
 * is clipped with all details open, that no name became markup, and that axe-core finds no violation. Pictures are named after `name`.
 */
export async function checkEveryScreen(
  browser: Browser,
  address: string,
  {
    name,
    heading,
  }: { readonly name: string; readonly heading: string | RegExp },
): Promise<void> {
  for (const screen of SCREENS) {
    const { page, complaints } = await openPage(browser, screen);
    await page.goto(address);
    const words = await page.textContent("h1");
    if (typeof heading === "string") {
      expect(words).toBe(heading);
    } else {
      expect(words).toMatch(heading);
    }
    expect(await page.title()).toMatch(/^[●▲✕‖○] .* · Hearth$/u);
    await page.waitForLoadState("networkidle");
    expect(complaints, "errors in the browser").toEqual([]);
    expect(await page.locator("img").count()).toBe(0);
    await page.locator("details").evaluateAll((all) => {
      for (const each of all) {
        each.setAttribute("open", "");
      }
    });
    expect(await overflowOf(page), `${screen.name} overflows`).toBe(0);
    expect(await clippedTables(page), `${screen.name} clips`).toEqual([]);
    await page.reload();
    await takePicture(page, `${name}-${screen.name}`);
    if (EXAMINED.includes(screen.name)) {
      expect(await findViolations(page)).toEqual([]);
    }
    await page.context().close();
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
