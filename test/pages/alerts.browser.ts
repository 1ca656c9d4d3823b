import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { backupName } from "../../supervisor/backup/manifest.ts";
import { writeSampleBackup } from "../supervisor/sample-backup.ts";
import { DESK, openBrowser, openPage } from "./browser.ts";
import {
  startConsoleTestbed,
  withAlarm,
  type ConsoleTestbed,
} from "./console-testbed.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import { pastRun } from "./jobs-testbed.ts";
import { listen } from "../servers/ports.ts";

const MARKUP = '<img src=x onerror="document.title=1">';
const TOKEN = "token-that-is-never-shown";

let browser: Browser;
let testbed: ConsoleTestbed;
let receiver: Server;
/** Bodies of the alerts that arrived at the working channel. */
const received: string[] = [];

beforeAll(async () => {
  browser = await openBrowser();
  receiver = createServer((request, response) => {
    if (request.url !== "/works") {
      response.writeHead(500).end("out of memory");
      return;
    }
    request.on("data", (part) => received.push(String(part)));
    request.on("end", () => response.end("{}"));
  });
  const port = await listen(receiver);
  const address = `http://127.0.0.1:${port}`;
  const backup = backupName(Date.now() - 7 * HOUR_MS);
  testbed = await startConsoleTestbed({
    services: ["notes"],
    settings: {
      notify: [
        {
          kind: "webhook",
          name: "phone",
          url: `${address}/works`,
          token: TOKEN,
        },
        { kind: "webhook", name: "pager", url: `${address}/${TOKEN}` },
      ],
    },
    past: (history, now) => {
      withAlarm(
        {
          fingerprint: "job:health-report",
          level: "warning",
          subject: "health-report",
          text: `the report ends early ${MARKUP}`,
          output: `unexpected end ${"endless".repeat(40)}`,
          command: "hearth jobs run health-report",
        },
        6 * HOUR_MS,
      )(history, now);
      history.db
        .prepare(
          "INSERT INTO alarms (id, fingerprint, raised_at, cleared_at, alarm, told) VALUES ('old', 'check:gateway', ?, ?, ?, '{}')",
        )
        .run(
          now - 30 * HOUR_MS,
          now - 29 * HOUR_MS,
          JSON.stringify({
            fingerprint: "check:gateway",
            level: "down",
            subject: "gateway",
            text: "answered 502",
            command: "hearth check gateway",
          }),
        );
      pastRun(history, {
        job: "restore-drill",
        startedAt: now - 5 * HOUR_MS,
        endedAt: now - 4.5 * HOUR_MS,
        status: "done",
        text: `${backup} restores.`,
        details: { backup },
      });
    },
  });
  const backups = join(testbed.logs, "..", "backups");
  writeSampleBackup(backups, "postgres", backup);
  writeSampleBackup(backups, "postgres", backupName(Date.now() - 31 * HOUR_MS));
  writeSampleBackup(backups, "notes", backupName(Date.now() - 8 * HOUR_MS));
});

afterAll(async () => {
  await browser?.close();
  await testbed?.stop();
  await new Promise((resolve) => receiver.close(resolve));
});

test("the page of alerts is fit for every screen", async () => {
  await checkEveryScreen(browser, `${testbed.address}/alerts`, {
    name: "alerts",
    // After some failed deliveries the pager is an alert of its own: on a slow machine before the last screen.
    heading: /^(?:1 open alert|2 open alerts)\.$/,
  });
});

test("the page of backups is fit for every screen", async () => {
  await checkEveryScreen(browser, `${testbed.address}/backups`, {
    name: "backups",
    heading: /^The newest backup was taken /,
  });
});

test("alerts, channels and history are listed without secrets, and lead to their jobs", async () => {
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/alerts`);
  const text = await page.locator("main").innerText();
  expect(text).toContain("Sent through phone, pager.");
  expect(text).toContain("lasted 1 h");
  expect(await page.content()).not.toContain(TOKEN);
  await page.getByRole("link", { name: "health-report" }).click();
  expect(page.url()).toBe(`${testbed.address}/jobs/health-report`);
  await page.context().close();
});

test("a channel is tested with a button, which reports the result", async () => {
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/alerts`);
  await page.getByRole("button", { name: "Send test through phone" }).click();
  expect(await page.getByRole("status").first().innerText()).toBe(
    "Test message delivered through phone.",
  );
  expect(received.join()).toContain("this is a test message");
  expect(await page.locator("main").innerText()).toContain("delivered");
  const before = received.length;
  await page.getByRole("button", { name: "Send test through pager" }).click();
  expect(await page.locator("main").innerText()).toMatch(
    /The test message through "pager" failed: .*500.*; it is retried\./,
  );
  expect(await page.content()).not.toContain(TOKEN);
  expect(received.slice(before).join()).not.toContain("test message");
  await page.goto(`${testbed.address}/alerts`);
  expect(await page.locator("main").innerText()).toContain("failing");
  await page.getByText("Mail", { exact: true }).click();
  await takePicture(page, "alerts-setup");
  await page.context().close();
});

test("an alert is silenced and resumed, without script", async () => {
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/alerts`);
  await page.locator("#silence-0 summary").click();
  await page.locator("#silence-0").getByLabel("Duration").selectOption("8h");
  await page.locator("#silence-0").getByRole("button").click();
  expect(await page.locator("main").innerText()).toContain(
    'Alerts for "health-report" silenced until',
  );
  await page
    .getByRole("button", { name: "End silence of health-report" })
    .click();
  expect(await page.locator("main").innerText()).toContain(
    'Alerts for "health-report" resumed.',
  );
  await page.context().close();
});

test("each backup has its contents, its drill, and a command to copy", async () => {
  const { page } = await openPage(browser, DESK);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`${testbed.address}/backups`);
  const rows = page.locator(".row.job").filter({ hasText: "1,204 calls" });
  expect(await rows.count()).toBe(2);
  expect(await rows.first().innerText()).toContain("restored in a drill 4 h");
  expect(await rows.last().innerText()).toContain("no drill");
  expect(await page.locator("main").innerText()).toContain(
    "vault family with 312 documents",
  );
  await rows.first().getByText("Restore…").click();
  await takePicture(page, "backups-restore");
  await rows.first().getByRole("button", { name: "Copy" }).click();
  expect(await page.evaluate("navigator.clipboard.readText()")).toMatch(
    /^npx hearth restore \d{4}-\d\d-\d\dT\d{6}Z$/,
  );
  await page.context().close();
});

test("copy buttons need script, and stay when the page is refreshed", async () => {
  const open = async (javaScript: boolean) => {
    const { page } = await openPage(browser, DESK, { javaScript });
    await page.goto(`${testbed.address}/alerts`);
    await page.locator("summary", { hasText: "ntfy" }).first().click();
    await page.getByText("notify:").first().waitFor();
    return page;
  };
  const copies = (page: Page) => page.getByRole("button", { name: "Copy" });
  const without = await open(false);
  expect(await copies(without).count()).toBe(0);
  await without.context().close();
  const page = await open(true);
  const before = await copies(page).count();
  expect(before).toBeGreaterThan(0);
  await page.locator("main").evaluate((main) => main.classList.add("old"));
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await page.locator("main:not(.old)").waitFor();
  expect(await copies(page).count()).toBe(before);
  await page.context().close();
});

test.each([
  ["no clipboard", "undefined"],
  ["a denied one", "{ writeText: () => Promise.reject(new Error()) }"],
])("with %s, the command is selected instead", async (_, clipboard) => {
  const { page, complaints } = await openPage(browser, DESK);
  await page.addInitScript(
    `Object.defineProperty(navigator, "clipboard", { value: ${clipboard} })`,
  );
  await page.goto(`${testbed.address}/backups`);
  await page.getByText("Restore…").first().click();
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByRole("button", { name: "Selected: copy it" }).waitFor();
  expect(await page.evaluate("getSelection().toString()")).toMatch(
    /^npx hearth restore \S+$/,
  );
  expect(complaints).toEqual([]);
  await page.context().close();
});
