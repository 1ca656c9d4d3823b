import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import { readerUrl } from "../servers/database.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { startRelay } from "../servers/relay.ts";
import { asOperator } from "../supervisor/operator.ts";
import { waitFor } from "../wait-for.ts";
import { DESK, findViolations, openBrowser, openPage } from "./browser.ts";
import {
  anOrdinaryDay,
  startConsoleTestbed,
  withAlarm,
  type ConsoleTestbed,
  type TestbedOptions,
} from "./console-testbed.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";

const SERVICES = ["gateway", "gateway-ready", "notes", "postgres", "redis"];
const MARKUP = '<img src=x onerror="document.title=1">';

let browser: Browser;
let spending: AdminFixture;
let databaseUrl: string;
let testbed: ConsoleTestbed | undefined;

beforeAll(async () => {
  browser = await openBrowser();
  spending = await startAdminFixture();
  await fillMonth(spending);
  databaseUrl = readerUrl(spending.databaseUrl, "supervisor");
});
afterEach(async () => {
  await testbed?.stop();
  testbed = undefined;
});
afterAll(async () => {
  await browser.close();
  await spending.stop();
});

/** Calls of this month: four aliases, two keys, one of them near its budget, one with a hostile name. */
async function fillMonth(fixture: AdminFixture): Promise<void> {
  const editor = hashKey(
    await fixture.createKey({ key_alias: "editor", max_budget: 10 }),
  );
  const office = hashKey(
    await fixture.createKey({ key_alias: "office & <home>", max_budget: 50 }),
  );
  const today = new Date();
  const rows = Array.from({ length: today.getUTCDate() }, (_, index) => {
    const day = new Date(today.getTime() - index * DAY_MS);
    const ended_at = day.toISOString();
    return [
      {
        ended_at,
        api_key: office,
        model_group: "chat-large",
        spend: 0.9 + (index % 5) / 4,
      },
      {
        ended_at,
        api_key: editor,
        model_group: "sonnet",
        spend: 0.3 + (index % 3) / 8,
      },
      {
        ended_at,
        api_key: editor,
        model_group: "embed",
        spend: 0.000_034,
        cache_hit: index % 2 === 0,
        saved: 0.01,
      },
      {
        ended_at,
        api_key: null,
        model_group: "local-coder",
        spend: 0,
        status: "failure" as const,
      },
    ];
  });
  await fixture.spend(...rows.flat());
}

const failedDrill = withAlarm(
  {
    fingerprint: "restore-drill",
    level: "warning",
    subject: "restore-drill",
    text: "the copy on the other host ends after 61 of 204 MB",
    output: "unexpected end of file",
    tried: ["tried 3 times since 04:12"],
    command: "hearth backup verify --on b",
  },
  21_000_000,
);

const all = (...pasts: readonly NonNullable<TestbedOptions["past"]>[]) =>
  ((history, now) =>
    pasts.forEach((past) =>
      past(history, now),
    )) satisfies TestbedOptions["past"];

const SITUATIONS: readonly {
  readonly name: string;
  readonly options: () => TestbedOptions;
  readonly heading: string;
}[] = [
  {
    name: "empty",
    options: () => ({ services: [] }),
    heading: "All is well.",
  },
  {
    name: "well",
    options: () => ({
      services: SERVICES,
      past: anOrdinaryDay(SERVICES, "gateway"),
      databaseUrl,
    }),
    heading: "All is well.",
  },
  {
    name: "warned",
    options: () => ({
      services: SERVICES,
      past: all(anOrdinaryDay(SERVICES, "gateway"), failedDrill),
      databaseUrl,
    }),
    heading: "One thing needs attention; every service answers.",
  },
  {
    name: "faults",
    options: () => ({
      services: SERVICES,
      sick: { notes: "out of disk" },
      past: all(anOrdinaryDay(SERVICES, "notes"), failedDrill),
      databaseUrl,
    }),
    heading: "Notes is down.",
  },
  {
    name: "hostile",
    options: () => ({
      services: [`a${"-very-long-name".repeat(8)}`, "notes"],
      sick: { notes: `${MARKUP} ${"endless".repeat(60)} 🔥` },
      past: withAlarm(
        {
          fingerprint: "notes:1",
          level: "down",
          subject: `vault ${MARKUP}`,
          text: `${MARKUP}${"x".repeat(300)}`,
          output: MARKUP,
          tried: [MARKUP],
          command: `hearth notes "${MARKUP}"`,
        },
        1000,
      ),
      databaseUrl: "postgres://unused@127.0.0.1:1/hearth",
    }),
    heading: `Vault ${MARKUP} and notes are down.`,
  },
];

describe.each(SITUATIONS)(
  "the status page, $name",
  ({ name, options, heading }) => {
    test("shows its heading, fits every screen and is accessible", async () => {
      testbed = await startConsoleTestbed(options());
      await checkEveryScreen(browser, testbed.address, {
        name: `status-${name}`,
        heading,
      });
    });
  },
);

test("a fault appears on an open page and disappears", async () => {
  testbed = await startConsoleTestbed({ services: SERVICES });
  const { page } = await openPage(browser, DESK);
  await page.clock.install();
  await page.goto(testbed.address);
  await page.locator("summary").first().click();
  testbed.sicken("notes", "out of disk");
  await waitFor("notes to be down", () => testbed?.status().ok === false);
  await page.clock.runFor(16_000);
  await page.getByRole("heading", { name: "Notes is down." }).waitFor();
  expect(await page.title()).toBe("✕ Notes is down. · Hearth");
  expect(await page.getByText("out of disk").first().isVisible()).toBe(true);
  expect(await page.locator("details[open]").count()).toBe(1);
  testbed.sicken("notes", undefined);
  await waitFor("notes to be up", () => testbed?.status().ok === true);
  await page.clock.runFor(16_000);
  await page.getByRole("heading", { name: "All is well." }).waitFor();
  await page.context().close();
});

test("with a hung gateway, keys show what is known, and the heading follows at once", async () => {
  const relay = await startRelay(Number(new URL(spending.url).port), () => ({
    nextRequest: ({ length }) =>
      length === 0 ? null : { length, point: null, answers: 0 },
    nextAnswer: ({ length }) => (length === 0 ? null : { length, ends: false }),
  }));
  const url = `http://127.0.0.1:${relay.port}`;
  testbed = await startConsoleTestbed({
    services: [],
    env: { GATEWAY_URL: url, PROXY_MASTER_KEY: MASTER_KEY },
    checks: [
      {
        name: "gateway",
        kind: "http",
        url: `${url}/health/liveliness`,
        every: "1h",
        expect: { within: "100ms" },
      },
    ],
  });
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/keys`);
  const heading = await page.textContent("h1");
  expect(heading).toContain("2 keys");
  relay.stall();
  await page.reload();
  expect(await page.textContent("h1")).toBe(heading);
  const notice = page.locator(".note");
  expect(await notice.innerText()).toMatch(
    /The gateway does not answer. This page shows its data of \d\d:\d\d; changes are not possible. Open gateway$/,
  );
  expect(await page.getByText("editor").count()).toBeGreaterThan(0);
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "keys-hung");
  await waitFor("the heading", () => testbed?.status().ok === false);
  expect(testbed.status().verdict).toMatch(/^Gateway (failed|is down)/);
  await page.goto(`${testbed.address}/keys?search=unseen`);
  expect(await page.textContent("main")).not.toContain("ABORT_ERR");
  await page.getByRole("link", { name: "Open gateway" }).click();
  await page.getByRole("heading", { name: /^Gateway is/ }).waitFor();
  relay.restore();
  await page.goto(`${testbed.address}/keys`);
  expect(await page.locator(".note").count()).toBe(0);
  await page.context().close();
  await relay.close();
});

test("without script the page is complete and reloads itself", async () => {
  testbed = await startConsoleTestbed({ services: SERVICES, databaseUrl });
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(testbed.address);
  expect(await page.textContent("h1")).toBe("All is well.");
  expect(await page.locator(".service").count()).toBe(SERVICES.length);
  expect(await page.content()).toContain('http-equiv="refresh"');
  await page.context().close();
});

test("spend is right, and cached figures are shown without Postgres", async () => {
  testbed = await startConsoleTestbed({ services: [], databaseUrl });
  const { page } = await openPage(browser, DESK);
  await page.goto(testbed.address);
  const days = new Date().getUTCDate();
  expect(await page.locator(".figures").innerText()).toContain(
    `Calls\n${days * 4}`,
  );
  expect(await page.getByText("office & <home>").count()).toBe(1);
  expect(await page.locator(".key").innerText()).toContain("chat-large");
  await testbed.stop();
  testbed = await startConsoleTestbed({
    services: [],
    databaseUrl: "postgres://unused@127.0.0.1:1/hearth",
  });
  const away = await openPage(browser, DESK);
  await away.page.goto(testbed.address);
  expect(await away.page.getByText("Postgres cannot be reached").count()).toBe(
    1,
  );
  for (const each of [page, away.page]) {
    await each.context().close();
  }
});

test("the printed page is light and keeps its commands", async () => {
  testbed = await startConsoleTestbed({
    services: SERVICES,
    past: failedDrill,
  });
  const { page } = await openPage(browser, { width: 1280, scheme: "dark" });
  await page.emulateMedia({ media: "print" });
  await page.goto(testbed.address);
  expect(await page.locator("nav").isVisible()).toBe(false);
  expect(
    await page.evaluate("getComputedStyle(document.body).backgroundColor"),
  ).toBe("rgb(255, 255, 255)");
  await page.context().close();
});

describe("signing in", () => {
  async function openUnknown(address: string) {
    const opened = await openPage(browser, DESK, { signedIn: false });
    await opened.page.goto(address);
    return opened;
  }

  test("the operator signs in by keyboard alone, sees the page and signs out", async () => {
    testbed = await startConsoleTestbed({ services: SERVICES });
    const { page } = await openUnknown(testbed.address);
    expect(await page.textContent("h1")).toBe("Sign in");
    expect(await findViolations(page)).toEqual([]);
    await takePicture(page, "sign-in");
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("Incorrect password.").waitFor();
    await page.keyboard.type(testbed.operatorPassword);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "All is well." }).waitFor();
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.context().close();
  });

  test.each([true, false])(
    "a link signs in once without a password, also from another site (script: %j)",
    async (javaScript) => {
      testbed = await startConsoleTestbed({ services: SERVICES });
      const created = await fetch(`${testbed.address}/api/sign-in-links`, {
        method: "POST",
        headers: asOperator,
      });
      const { path } = (await created.json()) as { readonly path: string };
      const link = `${testbed.address}${path}`;
      const { page } = await openPage(browser, DESK, {
        signedIn: false,
        javaScript,
      });
      // A chat in the browser is another site: redirects from its links arrive without the cookie.
      await page.goto(
        `data:text/html,<a href="${link}">Hearth is up: open it</a>`,
      );
      await page.getByRole("link").click();
      await page.getByRole("heading", { name: "All is well." }).waitFor();
      expect(new URL(page.url()).pathname).toBe("/");
      const other = await openUnknown(link);
      expect(await other.page.textContent("h1")).toBe("Sign in");
      expect(await other.page.textContent("main")).toContain(
        "This link was already used",
      );
      expect(await findViolations(other.page)).toEqual([]);
      await other.page
        .getByLabel("Operator password")
        .fill(testbed.operatorPassword);
      await other.page.keyboard.press("Enter");
      await other.page.getByRole("heading", { name: "All is well." }).waitFor();
      await other.page.context().close();
      await page.context().close();
    },
  );

  test("another site's form changes nothing, and signing out ends the session", async () => {
    testbed = await startConsoleTestbed({ services: SERVICES });
    const { page } = await openUnknown(testbed.address);
    await page.getByLabel("Operator password").fill(testbed.operatorPassword);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "All is well." }).waitFor();
    const foreign = await page.context().newPage();
    await foreign.goto("data:text/html,<h1>elsewhere</h1>");
    await foreign.setContent(
      `<form method="post" action="${testbed.address}/api/pause/notes"><button>go</button></form>`,
    );
    await foreign.getByRole("button").click();
    await foreign.waitForLoadState();
    expect(
      testbed.status().checks.find(({ name }) => name === "notes")?.state,
    ).toBe("up");
    await page.context().close();
  });
});
