import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import {
  DESK,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
  SCREENS,
  showOn,
  type Watched,
} from "./browser.ts";

let fixture: AdminFixture;
let browser: Browser;
let key: string;

beforeAll(async () => {
  fixture = await startAdminFixture();
  browser = await openBrowser();
  key = await fixture.createKey({ key_alias: "reader", max_budget: 1 });
});

afterAll(async () => {
  await browser?.close();
  await fixture?.stop();
});

async function open(
  path: string,
  screen: Parameters<typeof openPage>[1] = DESK,
  options?: Parameters<typeof openPage>[2],
): Promise<Watched> {
  const opened = await openPage(browser, screen, options);
  await opened.page.goto(fixture.url + path);
  return opened;
}

/** Saves the page if HEARTH_PICTURES names a folder. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["HEARTH_PICTURES"];
  if (folder !== undefined) {
    await page.screenshot({ path: `${folder}/${name}.png` });
  }
}

const CHAT = "#post_v1_chat_completions";

test("the start page and the documentation fit every screen and are accessible", async () => {
  const start = await open("/");
  expect(await start.page.locator("h1").innerText()).toBe(
    "This is a Hearth gateway.",
  );
  const docs = await open(`/docs${CHAT}`);
  await docs.page.locator(`${CHAT} .try`).waitFor();
  for (const screen of SCREENS) {
    await showOn(start.page, screen);
    await picture(start.page, `gateway-${screen.name}`);
    expect(await overflowOf(start.page), screen.name).toBe(0);
    if (screen.examined) {
      expect(await findViolations(start.page), screen.name).toEqual([]);
    }

    await showOn(docs.page, screen);
    await docs.page.evaluate("scrollTo(0, 0)");
    await picture(docs.page, `docs-${screen.name}`);
    await docs.page.locator(CHAT).scrollIntoViewIfNeeded();
    await picture(docs.page, `docs-chat-${screen.name}`);
    expect(await overflowOf(docs.page), screen.name).toBe(0);
    if (screen.examined) {
      expect(await findViolations(docs.page), screen.name).toEqual([]);
    }
  }
  for (const { page, complaints } of [start, docs]) {
    expect(complaints).toEqual([]);
    await page.context().close();
  }
});

test("the search finds operations by path, words and fields", async () => {
  const { page } = await open("/docs");
  const shown = () =>
    page
      .locator("section[data-group] > details:visible summary code")
      .allInnerTexts();
  const search = page.getByLabel("Search operations");
  const all = (await shown()).length;
  await search.fill("chat completions");
  expect(await shown()).toEqual(["/v1/chat/completions"]);
  expect(await page.locator("#docs-found").innerText()).toBe(
    "1 operation found.",
  );
  expect(await page.locator("h2#key").isVisible()).toBe(false);
  await search.fill("max_budget_in_team");
  expect(await page.locator("#docs-found").innerText()).toContain(
    "by their fields",
  );
  expect(await shown()).toContain("/team/member_add");
  await search.fill("no such thing at all");
  expect(await page.locator("#docs-found").innerText()).toContain(
    "No operation found.",
  );
  await search.fill("");
  expect(await shown()).toHaveLength(all);
  await page.context().close();
});

test("examples have the address of the browser, in three languages", async () => {
  // Another name for the same gateway.
  const address = fixture.url.replace("127.0.0.1", "localhost");
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(`${address}/docs${CHAT}`);
  const example = page.locator(`${CHAT} pre[aria-label^="Example"]`);
  expect(await example.innerText()).toBe(
    `curl '${address}/v1/chat/completions' -X POST \\
  -H "Authorization: Bearer $HEARTH_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"MODEL","messages":[{"role":"user","content":"Hello"}]}'`,
  );
  const language = (name: string) =>
    page.locator(CHAT).getByRole("button", { name, exact: true });
  await language("Python").click();
  expect(await example.innerText()).toContain(
    `answer = requests.post(\n    "${address}/v1/chat/completions",`,
  );
  await language("TypeScript").click();
  expect(await example.innerText()).toContain(
    `const answer = await fetch("${address}/v1/chat/completions", {`,
  );
  await page
    .locator(`${CHAT} textarea`)
    .fill(`{"model": "it's", "stream": true, "stop": null}`);
  await language("curl").click();
  expect(await example.innerText()).toContain(
    `{"model":"it'\\''s","stream":true,`,
  );
  await language("Python").click();
  expect(await example.innerText()).toContain(
    `"stream": True,\n        "stop": None,`,
  );
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await language("Copy").click();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
    await example.textContent(),
  );
  await page.locator(`${CHAT} textarea`).fill("{");
  expect(await page.locator(`${CHAT} [role=status]`).innerText()).toContain(
    "The body is not valid JSON",
  );
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a call is tried by keyboard, with a key that only the page's memory has", async () => {
  const { page } = await open(`/docs${CHAT}`);
  const card = page.locator(CHAT);
  const status = card.locator("[role=status]");
  await card.locator("textarea").fill(
    JSON.stringify({
      model: "mock",
      messages: [{ role: "user", content: "Hello <b>you</b>" }],
    }),
  );
  await card.getByRole("button", { name: "Send" }).press("Enter");
  expect(await status.innerText()).toContain("A key is required");
  await page.keyboard.type(key);
  await card.getByRole("button", { name: "Send" }).press("Enter");
  await expect.poll(() => status.innerText()).toMatch(/^200 OK after \d+ ms$/);
  const answer = card.locator('pre[aria-label^="Answer"]');
  expect(JSON.parse(await answer.innerText())).toMatchObject({
    object: "chat.completion",
  });
  await picture(page, "docs-answer");

  await card.locator("textarea").fill(
    JSON.stringify({
      model: "mock",
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    }),
  );
  await card.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => answer.innerText()).toContain("data: [DONE]");

  const kept = await page.evaluate<string>(
    "JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href])",
  );
  expect(kept).not.toContain(key);
  expect(
    await card.locator('pre[aria-label^="Example"]').innerText(),
  ).not.toContain(key);
  await page.reload();
  expect(await page.getByLabel("Key, to try them").inputValue()).toBe("");
  await page.context().close();
});

test("paths and queries are filled in and escaped; errors are shown", async () => {
  const { page } = await open("/docs#get_key_info");
  await page.getByLabel("Key, to try them").fill(key);
  const info = page.locator("#get_key_info");
  await info.getByRole("button", { name: "Send" }).click();
  await expect
    .poll(() => info.locator('pre[aria-label^="Answer"]').innerText())
    .toContain('"key_alias": "reader"');
  await page.goto(`${fixture.url}/docs#post_key_key_regenerate`);
  const renew = page.locator("#post_key_key_regenerate");
  await renew.getByLabel("key (required)").fill("a/b c");
  expect(
    await renew.locator('pre[aria-label^="Example"]').innerText(),
  ).toContain("/key/a%2Fb%20c/regenerate'");
  await page.getByLabel("Key, to try them").fill("sk-unknown-key");
  await renew.getByRole("button", { name: "Send" }).click();
  await expect
    .poll(() => renew.locator("[role=status]").innerText())
    .toMatch(/^401 /);
  await page.context().close();
});

test("without script, the documentation lists everything and has a first call", async () => {
  const { page } = await open("/docs", DESK, { javaScript: false });
  expect(await page.locator("#docs-tools").isVisible()).toBe(false);
  expect(await page.locator("main").innerText()).toContain("First call");
  await page.locator(`${CHAT} > summary`).click();
  expect(await page.locator(CHAT).innerText()).toContain("messages");
  await page.context().close();
});
