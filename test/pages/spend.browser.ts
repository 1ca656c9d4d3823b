import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { asOperator } from "../supervisor/operator.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import { query } from "../../gateway/database/pool.ts";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import { readerUrl, throwAwayDatabase } from "../servers/database.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { DESK, openBrowser, openPage } from "./browser.ts";
import { startConsoleTestbed, type ConsoleTestbed } from "./console-testbed.ts";
import { checkEveryScreen } from "./every-screen.ts";

const hostile = `<img src=x onerror="document.title=1">'"& 💸 \u202eabc ${"long".repeat(40)}`;

let browser: Browser;
let spending: AdminFixture;
let empty: Awaited<ReturnType<typeof throwAwayDatabase>>;
const testbeds: ConsoleTestbed[] = [];

beforeAll(async () => {
  browser = await openBrowser();
  spending = await startAdminFixture();
  await fillMonths(spending);
  empty = await throwAwayDatabase();
});
afterAll(async () => {
  for (const testbed of testbeds) {
    await testbed.stop();
  }
  await browser?.close();
  await spending?.stop();
  await empty?.drop();
});

async function testbedOn(databaseUrl: string): Promise<ConsoleTestbed> {
  const testbed = await startConsoleTestbed({ services: [], databaseUrl });
  testbeds.push(testbed);
  return testbed;
}

const onSpending = () =>
  testbedOn(readerUrl(spending.databaseUrl, "supervisor"));

/** Seventy days of calls: two keys, four aliases, failures, cached and unpriced answers; before the last 25 days hostile names. */
async function fillMonths(fixture: AdminFixture): Promise<void> {
  await fixture.post("/team/new", { team_id: "home", team_alias: "Home" });
  const keys = [
    await fixture.createKey({ key_alias: "editor", user_id: "anna" }),
    await fixture.createKey({ key_alias: "office", team_id: "home" }),
    await fixture.createKey({
      key_alias: hostile.slice(0, 250),
      user_id: hostile,
    }),
  ].map(hashKey);
  const owners = [
    { user_id: "anna" },
    { team_id: "home" },
    { user_id: hostile },
  ];
  const models = ["chat-large", "sonnet", "embed", "vision", hostile];
  const now = Date.now();
  await fixture.spend(
    ...Array.from({ length: 70 }, (_, day) =>
      models.slice(0, day < 25 ? 4 : 5).map((model_group, at) => {
        const who = (day + at) % (day < 25 ? 2 : 3);
        return {
          ended_at: new Date(now - day * DAY_MS).toISOString(),
          api_key: keys[who] ?? null,
          ...owners[who],
          model_group,
          provider: at % 2 === 0 ? "openai" : "anthropic",
          spend: (at + 1) * 0.037 + (day % 7) * 0.011,
          ...(day % 9 === 0 && at === 1
            ? { status: "failure" as const, spend: 0 }
            : {}),
          ...(at === 2
            ? { cache_hit: day % 2 === 0, saved: day % 2 === 0 ? 0.01 : 0 }
            : {}),
          ...(at === 3 && day % 11 === 0 ? { unpriced: true, spend: 0 } : {}),
        };
      }),
    ).flat(),
  );
}

describe("the spend page", () => {
  test.each([
    ["usual", ""],
    ["keys", "?by=key&period=last-month&sort=requests&order=up"],
    ["days", "?by=day&from=2026-01-01"],
  ])("%s: fits every screen and is accessible", async (name, query) => {
    const testbed = await onSpending();
    await checkEveryScreen(browser, `${testbed.address}/spend${query}`, {
      name: `spend-${name}`,
      heading: /^\$ /,
    });
  });

  test("without calls it explains how to make one", async () => {
    const testbed = await testbedOn(readerUrl(empty.url, "supervisor"));
    await checkEveryScreen(browser, `${testbed.address}/spend`, {
      name: "spend-empty",
      heading: /^No calls in /,
    });
  });

  test("without Postgres it reports that and keeps its controls", async () => {
    const testbed = await testbedOn("postgres://unused@127.0.0.1:1/hearth");
    const csv = await fetch(`${testbed.address}/spend.csv`, {
      headers: asOperator,
    });
    expect(csv.status).toBe(503);
    expect(await csv.text()).toContain("Postgres cannot be reached");
    await checkEveryScreen(browser, `${testbed.address}/spend`, {
      name: "spend-away",
      heading: "Spend is unavailable.",
    });
  });
});

test("on paper, the spend page has no controls", async () => {
  const testbed = await onSpending();
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/spend`);
  // A4 upright.
  await page.setViewportSize({ width: 794, height: 1123 });
  const areVisible = () =>
    Promise.all(
      [
        "h2:text('Period')",
        ".named thead",
        "td:has(input)",
        ".tools small",
      ].map((control) => page.locator(control).first().isVisible()),
    );
  expect(await areVisible()).toEqual([true, true, true, true]);
  await page.emulateMedia({ media: "print" });
  expect(await areVisible()).toEqual([false, false, false, false]);
  expect(await page.locator("#by").isVisible()).toBe(true);
  await page.context().close();
});

test("sums of the page and its CSV match the ledger in every dimension", async () => {
  const testbed = await onSpending();
  const { page } = await openPage(browser, DESK, { javaScript: false });
  const from = new Date(Date.now() - 40 * DAY_MS).toISOString().slice(0, 10);
  const until = new Date(Date.now() - 3 * DAY_MS).toISOString().slice(0, 10);
  const [ledger] = await query<{ spend: number; calls: number; keys: number }>(
    spending.pool,
    `SELECT sum(spend)::float8 AS spend, count(*)::int AS calls, count(DISTINCT api_key)::int AS keys
       FROM spend_log WHERE payer IS NULL AND day BETWEEN '${from}' AND '${until}'`,
  );
  for (const by of ["model", "key", "user", "team", "provider", "day"]) {
    const address = `${testbed.address}/spend?by=${by}&from=${from}&until=${until}`;
    await page.goto(address);
    const cells = await page.locator("tfoot td").allInnerTexts();
    expect(cells.filter((text) => text !== "").slice(0, 2)).toEqual([
      `$ ${ledger?.spend.toFixed(2)}`,
      "100 %",
    ]);
    const csv = await fetch(address.replace("/spend?", "/spend.csv?"), {
      headers: asOperator,
    });
    const rows = (await csv.text()).trimEnd().split("\r\n");
    const [head, ...body] = rows.map((row) => row.split(","));
    const [spend, calls] = ["Spend", "Calls"].map((name) =>
      head?.indexOf(name),
    );
    const total = body.at(-1);
    expect(Number(total?.[spend ?? -1])).toBe(ledger?.spend);
    expect(Number(total?.[calls ?? -1])).toBe(ledger?.calls);
    if (by === "key") {
      expect(body).toHaveLength((ledger?.keys ?? 0) + 1);
    }
  }
  await page.context().close();
});

test("a number of failed calls leads to these calls", async () => {
  const testbed = await startConsoleTestbed({
    services: [],
    databaseUrl: readerUrl(spending.databaseUrl, "supervisor"),
    env: { GATEWAY_URL: spending.url, PROXY_MASTER_KEY: MASTER_KEY },
  });
  testbeds.push(testbed);
  const day = (ago: number) =>
    new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  const { page } = await openPage(browser, DESK);
  await page.goto(
    `${testbed.address}/spend?by=key&from=${day(24)}&until=${day(1)}`,
  );
  const row = page.locator("tbody tr", { hasText: "editor" }).last();
  const failed = row.locator("a[href*=failure]");
  const count = await failed.innerText();
  await failed.click();
  expect(await page.textContent("h1")).toBe(
    `${count} failed call${count === "1" ? "" : "s"}.`,
  );
  const rows = page.locator("tbody tr");
  expect(await rows.count()).toBe(Number(count));
  expect(await page.locator("main").innerText()).toContain("key editor");
  await page.getByRole("link", { name: "all", exact: true }).click();
  expect(await rows.count()).toBeGreaterThan(Number(count));
  await rows.first().getByRole("link", { name: "editor" }).click();
  expect(await page.textContent("h1")).toContain("editor");

  await page.context().close();
});

test("a new call is shown at once next to cached days", async () => {
  const testbed = await onSpending();
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/spend?period=7d&by=provider`);
  await spending.spend({ provider: "gemini", spend: 1.25 });
  await expect
    .poll(
      async () => {
        await page.reload();
        return page.locator("tbody tr", { hasText: "gemini" }).allInnerTexts();
      },
      { timeout: 20_000 },
    )
    .toEqual([expect.stringContaining("$ 1.25")]);
  await page.context().close();
});

test("by keyboard alone: choose days, sort and filter rows, compare keys", async () => {
  const testbed = await onSpending();
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/spend`);
  await page.getByRole("link", { name: "7 days" }).press("Enter");
  await page.getByRole("heading", { name: /7 days since/ }).waitFor();
  await page.getByRole("link", { name: "Key", exact: true }).press("Enter");
  await page.getByRole("heading", { name: "By key" }).waitFor();
  const calls = page.locator("thead").getByRole("link", { name: "Calls" });
  await calls.press("Enter");
  await page
    .locator('th[aria-sort="descending"]', { hasText: "Calls" })
    .waitFor();
  await calls.press("Enter");
  await page
    .locator('th[aria-sort="ascending"]', { hasText: "Calls" })
    .waitFor();
  await page.getByLabel("Compare editor").press("Space");
  await page.getByLabel("Compare office").press("Space");
  await page.getByRole("button", { name: "Compare selected" }).press("Enter");
  await page.getByText("selected rows").first().waitFor();
  expect(await page.locator("figure").first().locator("polyline").count()).toBe(
    2,
  );
  await page.getByLabel("Filter keys").fill("edit");
  await page.keyboard.press("Enter");
  await page.getByText("1 to 1 of 1").waitFor();
  expect(
    await page.locator("tbody tr", { hasText: "editor" }).count(),
  ).toBeGreaterThan(0);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("on a phone the name of a key has the width of its card", async () => {
  const testbed = await onSpending();
  const phone = { name: "phone", width: 360, scheme: "light" } as const;
  const { page } = await openPage(browser, phone);
  await page.goto(`${testbed.address}/spend?by=key`);
  const row = page.locator("tbody tr", {
    has: page.getByLabel("Compare editor"),
  });
  const [box, name, spend] = await Promise.all(
    ["td:has(input)", "th", "td.num"].map((cell) =>
      row.locator(cell).first().boundingBox(),
    ),
  );
  expect(box?.width).toBeLessThan(40);
  expect(name?.width).toBeGreaterThan(200);
  expect(spend?.y).toBeGreaterThan(name?.y ?? NaN);
  await page.context().close();
});

test("invalid days are named, and the page keeps its controls", async () => {
  const testbed = await onSpending();
  const { page } = await openPage(browser, DESK);
  for (const [query, words] of [
    [
      "from=2026-11-09&until=2026-11-01",
      "The first day must not be after the last.",
    ],
    [
      "from=2031-01-01&until=2031-01-02",
      "The last day must not be after today.",
    ],
    ["from=yesterday", "Both days must be written as 2026-11-01."],
  ]) {
    const answer = await page.goto(`${testbed.address}/spend?${query}`);
    expect(answer?.status()).toBe(400);
    expect(await page.locator("#mistake").innerText()).toBe(words);
    expect(await page.getByLabel("From").getAttribute("aria-invalid")).toBe(
      "true",
    );
  }
  const csv = await fetch(`${testbed.address}/spend.csv?from=yesterday`, {
    headers: asOperator,
  });
  expect(csv.status).toBe(400);
  await page.context().close();
});
