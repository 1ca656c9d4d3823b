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
import { checkEveryScreen, takePicture } from "./every-screen.ts";

/** An element of the page, as far as its tests read it. */
interface Boxed {
  readonly tagName: string;
  readonly getBoundingClientRect: () => {
    readonly top: number;
    readonly height: number;
  };
}

let browser: Browser;
let testbed: ConsoleTestbed;

beforeAll(async () => {
  [browser, testbed] = await Promise.all([
    openBrowser(),
    startConsoleTestbed({
      services: ["gateway"],
      // Nothing listens there.
      env: { GATEWAY_URL: "http://127.0.0.1:1", PROXY_MASTER_KEY: "sk-test" },
    }),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await testbed?.stop();
});

const BACKGROUND = "getComputedStyle(document.body).backgroundColor";
const LIGHT = "rgb(250, 248, 245)";
const DARK = "rgb(22, 19, 15)";

test("the theme follows the system until one is chosen, at once and on every page", async () => {
  const { page, complaints } = await openPage(browser, DESK);
  const colour = () => page.evaluate(BACKGROUND);
  await page.goto(`${testbed.address}/jobs`);
  expect(await colour()).toBe(LIGHT);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await colour()).toBe(DARK);
  await page.emulateMedia({ colorScheme: "light" });
  await page.getByRole("button", { name: "dark" }).click();
  expect(await colour()).toBe(DARK);
  expect(
    await page
      .getByRole("button", { name: "dark" })
      .getAttribute("aria-pressed"),
  ).toBe("true");
  await page.goto(`${testbed.address}/reports/`);
  expect(await colour()).toBe(DARK);
  expect(await findViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "system" }).click();
  expect(await colour()).toBe(LIGHT);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("without script the theme is chosen by a form that returns to the page", async () => {
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/search?q=jobs`);
  await page.getByRole("button", { name: "dark" }).click();
  expect(page.url()).toBe(`${testbed.address}/search?q=jobs`);
  expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  await page.context().close();
});

/** In CSS pixels, less than from one row of the header to the next. */
const ROW_HEIGHT = 30;

test.each([360, 1280])(
  "the keyboard walks through the header as it is read, at %d px",
  async (width) => {
    const { page } = await openPage(browser, { ...DESK, width });
    await page.goto(testbed.address);
    const header = page.locator("header");
    const stops = await header.locator("a, input, button").count();
    const rows: number[] = [];
    await header.locator(".brand").focus();
    for (let stop = 0; stop < stops; stop += 1) {
      const { y = 0, height = 0 } =
        (await page.locator(":focus").boundingBox()) ?? {};
      rows.push(Math.round((y + height / 2) / ROW_HEIGHT));
      await page.keyboard.press("Tab");
    }
    expect(rows).toEqual(rows.toSorted((a, b) => a - b));
    await page.context().close();
  },
);

test("the keyboard opens pages, the search and the list of shortcuts, but not while typing", async () => {
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(testbed.address);
  await page.keyboard.press("?");
  const list = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await list.waitFor();
  expect(await list.innerText()).toMatch(/g k\s+Keys/);
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "shortcuts");
  await page.keyboard.press("?");
  await list.waitFor({ state: "hidden" });
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.waitForURL("**/jobs");
  await page.keyboard.press("/");
  // A g would open a page, a ? the list.
  await page.keyboard.type("gj?");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/search?q=gj%3F");
  expect(await page.textContent("h1")).toBe("No results for “gj?”.");
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("services, jobs and pages are found without the gateway, and the page says what was not searched", async () => {
  await checkEveryScreen(browser, `${testbed.address}/search?q=re`, {
    name: "search",
    heading: /^\d+ results for “re”\.$/,
  });
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/search?q=gate`);
  const main = page.locator("main");
  expect(await main.innerText()).toMatch(
    /Keys, Users, Teams, Models not searched: .*does not answer \(ECONNREFUSED\)/,
  );
  await main.getByRole("link", { name: "gateway", exact: true }).click();
  expect(page.url()).toBe(`${testbed.address}/services/gateway`);
  await page.goto(`${testbed.address}/search`);
  expect(await page.textContent("h1")).toBe("Search");
  await page.context().close();
});

test.each([1440, 1100, 1024, 768, 360])(
  "the brand, the search and the sign-out share one row at %i pixels, and the pages are in that row or the next",
  async (width) => {
    const { page } = await openPage(browser, { width, scheme: "light" });
    await page.goto(`${testbed.address}/reports/`);
    const middles = await page.locator(".top > *").evaluateAll((all) =>
      all.map((each) => {
        const box = (each as unknown as Boxed).getBoundingClientRect();
        return {
          name: (each as unknown as Boxed).tagName,
          y: box.top + box.height / 2,
        };
      }),
    );
    const rows = middles.filter(({ name }) => name !== "NAV").map(({ y }) => y);
    expect(Math.max(...rows) - Math.min(...rows)).toBeLessThan(8);
    const links = await page
      .locator(".top nav a")
      .evaluateAll((all) =>
        all.map(
          (each) => (each as unknown as Boxed).getBoundingClientRect().top,
        ),
      );
    expect(new Set(links).size).toBe(1);
    await page.context().close();
  },
);

test("with the colours of the system, buttons have a border and the current page a line; paper has no controls", async () => {
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/reports/`);
  const styleOf = (selector: string, name: string) =>
    page.evaluate(
      `getComputedStyle(document.querySelector("${selector}")).getPropertyValue("${name}")`,
    );
  await page.emulateMedia({ forcedColors: "active" });
  expect(await styleOf("main button", "border-top-width")).toBe("1px");
  expect(await styleOf("header [aria-current]", "text-decoration-line")).toBe(
    "underline",
  );
  await page.emulateMedia({ forcedColors: "none", media: "print" });
  for (const control of ["main button", ".find", ".theme", ".skip"]) {
    expect(await page.locator(control).first().isVisible(), control).toBe(
      false,
    );
  }
  await page.context().close();
});

test("the first stop of the keyboard skips the navigation", async () => {
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/jobs`);
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to content" });
  expect(await skip.evaluate("document.activeElement.className")).toBe("skip");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  expect(
    await page.evaluate("document.activeElement.closest('main') !== null"),
  ).toBe(true);
  expect(await findViolations(page)).toEqual([]);
  await page.context().close();
});

test.each([360, 320])(
  "the navigation is one row on a phone of %i pixels, with the current page in view",
  async (width) => {
    const { page } = await openPage(browser, { width, scheme: "light" });
    await page.goto(`${testbed.address}/reports/`);
    const links = page.locator("header nav a");
    const tops = await links.evaluateAll((all) =>
      all.map((link) => (link as { offsetTop: number }).offsetTop),
    );
    expect(new Set(tops).size).toBe(1);
    const current = await page.locator("header [aria-current]").boundingBox();
    expect(current?.x).toBeGreaterThan(0);
    expect((current?.x ?? width) + (current?.width ?? 0)).toBeLessThan(width);
    expect(await overflowOf(page)).toBe(0);
    await page.context().close();
  },
);
