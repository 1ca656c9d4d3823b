import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { asOperator } from "../supervisor/operator.ts";
import { waitFor } from "../wait-for.ts";
import { DESK, openBrowser, openPage } from "./browser.ts";
import {
  anOrdinaryDay,
  startConsoleTestbed,
  withAlarm,
  type ConsoleTestbed,
  type TestbedOptions,
} from "./console-testbed.ts";
import { checkEveryScreen } from "./every-screen.ts";

const MARKUP = '<img src=x onerror="document.title=1">';
const longName = `a${"-very-long-name".repeat(8)}`;

let browser: Browser;
let testbed: ConsoleTestbed | undefined;

beforeAll(async () => {
  browser = await openBrowser();
});
afterEach(async () => {
  await testbed?.stop();
  testbed = undefined;
});
afterAll(async () => {
  await browser.close();
});

const SITUATIONS: readonly {
  readonly name: string;
  readonly service: string;
  readonly heading: RegExp;
  readonly options: TestbedOptions;
  readonly prepare?: (testbed: ConsoleTestbed) => void;
}[] = [
  {
    name: "usual",
    service: "gateway",
    heading: /^Gateway (is|has been) up/,
    options: {
      services: ["postgres"],
      programs: ["gateway"],
      checks: [
        {
          name: "gateway-ready",
          kind: "tcp",
          port: 1,
          every: "60s",
          depends_on: ["gateway"],
          service: "gateway",
        },
      ],
      past: anOrdinaryDay(["gateway", "postgres"], "gateway"),
    },
    prepare: ({ logs }) => {
      const lines = Array.from({ length: 40 }, (_, at) =>
        JSON.stringify({
          level: at === 30 ? 50 : 30,
          time: Date.now() - (40 - at) * 1000,
          msg: `call ${at} was answered`,
          port: 4000,
        }),
      );
      appendFileSync(join(logs, "gateway.log"), `${lines.join("\n")}\n`);
    },
  },
  {
    name: "empty",
    service: "notes",
    heading: /^Notes (is|has been) up/,
    options: { services: ["notes"] },
  },
  {
    name: "hostile",
    service: longName,
    heading: /^A-very-long-name.* has been down/,
    options: {
      services: [longName],
      sick: { [longName]: `${MARKUP} ${"endless".repeat(60)} 🔥 \u202eabc` },
      programs: ["gateway"],
      past: withAlarm(
        {
          fingerprint: "notes:1",
          level: "down",
          subject: longName,
          text: `${MARKUP}${"x".repeat(300)}`,
          output: MARKUP,
          tried: [MARKUP],
          command: `hearth notes "${MARKUP}"`,
        },
        1000,
      ),
    },
  },
];

describe.each(SITUATIONS)(
  "the page of a service, $name",
  ({ name, service, heading, options, prepare }) => {
    test("shows its heading, fits every screen and is accessible", async () => {
      testbed = await startConsoleTestbed(options);
      prepare?.(testbed);
      await checkEveryScreen(
        browser,
        `${testbed.address}/services/${service}`,
        {
          name: `service-${name}`,
          heading,
        },
      );
    });
  },
);

test("the page follows the restart of a service", async () => {
  testbed = await startConsoleTestbed({ services: [], programs: ["gateway"] });
  const pid = () => testbed?.status().services[0]?.pid;
  const before = pid();
  const { page } = await openPage(browser, DESK);
  await page.goto(testbed.address);
  await page.getByRole("link", { name: "gateway" }).first().click();
  await page.getByText("Restart…").click();
  await page.getByRole("button", { name: "Restart" }).click();
  await page.getByText('Restarting "gateway"').waitFor();
  await waitFor("another process", () => {
    const now = pid();
    return now !== null && now !== before;
  });
  await page
    .getByRole("heading", { name: /^Gateway (is|has been) up/ })
    .waitFor();
  await page.getByText(`pid ${pid()}`).waitFor();
  await page.getByText("State changes and actions").click();
  await page.getByText("restarted by the operator").waitFor();
  await page.context().close();
});

test("without script: the log starts at its end, with times, and can be filtered and followed", async () => {
  testbed = await startConsoleTestbed({ services: [], programs: ["gateway"] });
  const at = Date.UTC(2026, 10, 26, 13, 3, 5);
  const lines = Array.from({ length: 150 }, (_, index) =>
    JSON.stringify({ level: 30, time: at + index, msg: `call no. ${index}` }),
  );
  appendFileSync(
    join(testbed.logs, "gateway.log"),
    `${lines.join("\n")}\n{"level":50,"msg":"odd <b>end</b>"}\n`,
  );
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/services/gateway`);
  const log = page.getByRole("region", { name: "Latest log lines" });
  const last = log.getByText("odd <b>end</b>");
  const [box, frame] = [await last.boundingBox(), await log.boundingBox()];
  expect(box?.y).toBeLessThan((frame?.y ?? 0) + (frame?.height ?? 0));
  expect(await log.innerText()).toContain("26 Nov, 13:03:05 call no. 149");
  await page.getByLabel("Filter the latest lines").fill("NO. 14");
  await page.getByRole("button", { name: "Filter" }).click();
  expect(await log.locator("li").count()).toBe(11);
  await page.getByRole("link", { name: "Follow" }).click();
  expect(await page.content()).toContain('http-equiv="refresh" content="6"');
  expect(await log.locator("li").count()).toBe(11);
  await page.getByRole("link", { name: "Stop following" }).click();
  expect(new URL(page.url()).search).toBe("?filter=NO.+14");
  await page.context().close();
});

test("without script: check, pause and resume, silence and end silence, each confirmed and recorded", async () => {
  testbed = await startConsoleTestbed({
    services: ["notes"],
    sick: { notes: "out of disk" },
  });
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/services/notes`);
  const check = () => testbed?.status().checks[0];
  await page.getByRole("button", { name: "Check now" }).click();
  await page.getByText("Checked: answered 500").waitFor();
  await page.getByText("Silence…").click();
  await page.getByLabel("Duration").selectOption("8h");
  await page.getByRole("button", { name: "Silence" }).click();
  await page.locator(".note", { hasText: "Silenced until" }).waitFor();
  await waitFor("the alarm to be silenced", () =>
    testbed?.status().attention.some(({ silenced }) => silenced !== null),
  );
  await page.getByText("End silence…").click();
  await page.getByRole("button", { name: "End silence" }).click();
  await page.getByText('Alerts for "notes" resumed.').waitFor();
  await page.getByText("Pause…").click();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("heading", { name: /^Notes is paused/ }).waitFor();
  expect(check()?.state).toBe("paused");
  await page.getByText("Resume…").click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText('Check "notes" resumed.').waitFor();
  await waitFor("another look", () => check()?.state === "down");
  await page.goto(`${testbed.address}/services/notes`);
  for (const words of ["resumed", "paused by the operator", "for 8 h"]) {
    expect(await page.getByText(words).count()).toBeGreaterThan(0);
  }
  await page.context().close();
});

test("an unknown name and a form of another site change nothing", async () => {
  testbed = await startConsoleTestbed({ services: ["notes"] });
  const { address } = testbed;
  const unknown = await fetch(`${address}/services/nots`, {
    headers: { ...asOperator, accept: "text/html" },
  });
  expect(unknown.status).toBe(404);
  expect(await unknown.text()).toMatch(/did you mean .{1,6}notes/);
  const foreign = await fetch(`${address}/services/notes/pause`, {
    method: "POST",
    headers: { ...asOperator, origin: "http://elsewhere.example" },
  });
  expect(foreign.status).toBe(403);
  const wrong = await fetch(`${address}/services/notes/silence`, {
    method: "POST",
    headers: {
      ...asOperator,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "for=ever",
  });
  expect(wrong.status).toBe(409);
  expect(testbed.status().checks[0]?.state).toBe("up");
});
