import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import {
  clippedTables,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
  SCREENS,
  type Watched,
  DESK,
  showOn,
} from "./browser.ts";
import { takePicture } from "./every-screen.ts";

/** Changes reach the gateway by a notification, which may be slow on a busy machine. */
const PATIENT = { timeout: 20_000 };

let fixture: AdminFixture;
let browser: Browser;
const keys = { usual: "", hostile: "", unused: "" };

const HOSTILE = `<img src=x onerror="document.title='run'">'"& 💸 ${"long".repeat(50)}`;

beforeAll(async () => {
  fixture = await startAdminFixture();
  browser = await openBrowser();
  await fixture.post("/team/new", {
    team_id: "crew",
    team_alias: "The Crew",
    max_budget: 50,
    team_member_budget: 7,
  });
  await fixture.post("/team/member_add", {
    team_id: "crew",
    member: { user_id: "anna" },
  });
  keys.usual = await fixture.createKey({
    user_id: "anna",
    team_id: "crew",
    key_alias: "anna-laptop",
    max_budget: 5,
    budget_duration: "1mo",
    rpm_limit: 60,
    max_parallel_requests: 4,
  });
  await fixture.post("/team/new", { team_id: "strange", team_alias: HOSTILE });
  keys.hostile = await fixture.createKey({
    user_id: HOSTILE,
    team_id: "strange",
    key_alias: HOSTILE.slice(0, 256),
    max_budget: 5,
  });
  keys.unused = await fixture.createKey({});
  await fixture.spend(
    ...[keys.usual, keys.hostile].flatMap((key, which) =>
      Array.from({ length: 25 }, (_, day) => ({
        api_key: hashKey(key),
        spend: Math.abs(Math.sin(day + 1)) / 10,
        model_group: which === 0 ? "mock" : `${HOSTILE}${day % 3}`,
        ended_at: new Date(Date.now() - day * DAY_MS).toISOString(),
        ...(which === 1 && day % 4 === 1
          ? {
              status: "failure" as const,
              metadata: { error_information: { error_message: HOSTILE } },
            }
          : {}),
      })),
    ),
  );
  await fixture.chat(keys.usual, "hello", { model: "no-such-model" });
  await fixture.chat(keys.hostile, "hello", { model: HOSTILE });
});

afterAll(async () => {
  await browser?.close();
  await fixture?.stop();
});

async function open(
  screen: Parameters<typeof openPage>[1],
  options?: Parameters<typeof openPage>[2],
): Promise<Watched> {
  const opened = await openPage(browser, screen, options);
  await opened.page.goto(`${fixture.url}/me`);
  return opened;
}

async function show(page: Page, key: string): Promise<void> {
  await page.getByLabel("Your key").fill(key);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("heading", { name: "How to call" }).waitFor();
}

const PHONE = { name: "phone-dark", width: 360, scheme: "dark" } as const;

test.each(["usual", "hostile"] as const)(
  "%s data fits every screen and is accessible",
  async (which) => {
    const { page, complaints } = await open(DESK);
    await show(page, keys[which]);
    for (const screen of SCREENS) {
      await showOn(page, screen);
      expect(await overflowOf(page), screen.name).toBeLessThanOrEqual(0);
      await takePicture(page, `me-${which}-${screen.name}`);
    }
    for (const summary of await page.locator("summary").all()) {
      await summary.click();
    }
    for (const screen of SCREENS) {
      await showOn(page, screen);
      expect(await overflowOf(page), screen.name).toBeLessThanOrEqual(0);
      expect(await clippedTables(page), screen.name).toEqual([]);
      if (screen.examined) {
        expect(await findViolations(page), screen.name).toEqual([]);
      }
    }
    expect(await page.title()).toContain("· Hearth");
    expect(complaints).toEqual([]);
    await page.context().close();
  },
);

test.each([DESK, PHONE])("/me is accessible, on $name", async (screen) => {
  const { page, complaints } = await open(screen);
  await page.goto(`${fixture.url}/me`);
  expect(await findViolations(page)).toEqual([]);
  expect(await overflowOf(page)).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("the last day of the chart is above its date on a desktop", async () => {
  const { page } = await open(DESK);
  await show(page, keys.usual);
  const chart = await page.locator("figure svg").boundingBox();
  const dates = await page.locator("figure .ends").boundingBox();
  expect(chart?.width).toBe(dates?.width);
  await page.context().close();
});

test("an unused key shows its models", async () => {
  const { page, complaints } = await open(PHONE);
  await show(page, keys.unused);
  expect(await page.textContent("main")).toContain("No calls in this period.");
  expect(await findViolations(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("the form works without script", async () => {
  const { page } = await open(DESK, { javaScript: false });
  await show(page, keys.usual);
  expect(await page.textContent("h1")).toContain("anna-laptop has $");
  expect(await page.content()).not.toContain(keys.usual);
  await page.context().close();
});

test("by the keyboard alone", async () => {
  const { page } = await open(DESK);
  // Past the link to the content, the brand and the two pages.
  for (let stops = 0; stops < 5; stops++) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type(keys.usual);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "anna-laptop has" }).waitFor();
  await page.context().close();
});

test("earlier calls are a page away, also by keyboard, with the key that the tab keeps", async () => {
  const { page, complaints } = await open(DESK);
  await show(page, keys.usual);
  const rows = page
    .getByRole("region", { name: "Calls", exact: true })
    .locator("tbody tr");
  const newest = await rows.allInnerTexts();
  expect(newest).toHaveLength(20);
  await page.getByRole("button", { name: "Older calls" }).press("Enter");
  await page.getByRole("button", { name: "Newer calls" }).waitFor();
  expect(await rows.count()).toBe(5);
  expect(await page.locator(":focus").innerText()).toMatch(/^calls$/i);
  await page.getByRole("button", { name: "Newer calls" }).press("Enter");
  await page.getByRole("button", { name: "Older calls" }).waitFor();
  expect(await rows.allInnerTexts()).toEqual(newest);
  expect(page.url()).toBe(`${fixture.url}/me`);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("the key is kept in the tab only, until it is forgotten", async () => {
  const { page } = await open(DESK);
  await show(page, keys.usual);
  await page.reload();
  await page.getByRole("heading", { name: "anna-laptop has" }).waitFor();
  expect(await page.context().cookies()).toEqual([]);
  expect(await page.evaluate("localStorage.length")).toBe(0);
  const other = await page.context().newPage();
  await other.goto(`${fixture.url}/me`);
  expect(await other.textContent("h1")).toBe("Usage of a key");
  await page.getByRole("button", { name: "Forget key" }).click();
  await page.getByRole("heading", { name: "Usage of a key" }).waitFor();
  expect(await page.evaluate("sessionStorage.length")).toBe(0);
  await page.context().close();
});

test("an unknown key is rejected below the field", async () => {
  const { page } = await open(DESK);
  await page.getByLabel("Your key").fill("sk-unknown-key");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("is unknown");
  await page.context().close();
});

test("an exceeded budget is shown with the rejection, and so is a raised one", async () => {
  const key = await fixture.createKey({ key_alias: "small", max_budget: 1e-9 });
  await fixture.chat(key, "one");
  await expect
    .poll(async () => (await fixture.chat(key, "two")).status, PATIENT)
    .toBe(400);
  // The page shows the ledger, which gets the call a moment later.
  await fixture.running.gateway.ledger.flush();
  const { page } = await open(DESK);
  await show(page, key);
  expect(await page.textContent("h1")).toContain("is used up");
  expect(await page.textContent("main")).toContain("Budget has been exceeded!");
  await fixture.post("/key/update", { key, max_budget: 2 });
  await expect
    .poll(async () => (await fixture.chat(key, "three")).status, PATIENT)
    .toBe(200);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("heading", { name: "small has $ 2.00 left." }).waitFor();
  await page.context().close();
});
