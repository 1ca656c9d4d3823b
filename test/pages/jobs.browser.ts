import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import {
  DESK,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
} from "./browser.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import { pastRun, startJobsTestbed, type JobsTestbed } from "./jobs-testbed.ts";
import type { History } from "../../supervisor/history/history.ts";

const MARKUP = '<img src=x onerror="document.title=1">';

let browser: Browser;
let testbed: JobsTestbed | undefined;

beforeAll(async () => {
  browser = await openBrowser();
});
afterEach(async () => {
  await testbed?.stop();
  testbed = undefined;
});
afterAll(() => browser.close());

/** A night in which one job failed after all its tries. */
function anOrdinaryNight(history: History, now: number): void {
  for (let night = 40; night > 0; night -= 1) {
    pastRun(history, {
      job: "steady",
      startedAt: now - night * HOUR_MS,
      endedAt: now - night * HOUR_MS + 2300,
      status: night % 7 === 0 ? "skipped" : "done",
      text: night % 7 === 0 ? "there was nothing to do." : "all steady.",
      details: { night },
    });
  }
  pastRun(history, {
    job: "slow-sweep",
    startedAt: now - 3 * HOUR_MS,
    endedAt: now - 2 * HOUR_MS,
    status: "failed",
    text: "the broom broke: get another, then run it again.",
    asked: true,
  });
}

/** A failure whose every word is hostile. */
function aHostileNight(history: History, now: number): void {
  pastRun(history, {
    job: "slow-sweep",
    startedAt: now - 1000,
    endedAt: now,
    status: "failed",
    text: `${MARKUP} ${"endless".repeat(60)} 🔥`,
    details: { [MARKUP]: "x".repeat(100_000) },
  });
}

test("jobs that never ran are reported on every screen", async () => {
  testbed = await startJobsTestbed();
  await checkEveryScreen(browser, `${testbed.address}/jobs`, {
    name: "jobs-empty",
    heading: "No job has run yet.",
  });
});

test("a failed job comes first, with the command to run it again, on every screen", async () => {
  testbed = await startJobsTestbed(anOrdinaryNight);
  await checkEveryScreen(browser, `${testbed.address}/jobs`, {
    name: "jobs-usual",
    heading: "slow-sweep failed.",
  });
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/jobs`);
  expect(await page.locator(".attention").innerText()).toContain(
    "hearth jobs run slow-sweep",
  );
  expect(await page.locator(".job").first().innerText()).toContain(
    "the broom broke",
  );
  expect(await page.getByText("Every hour").count()).toBe(1);
  await page.context().close();
});

test("hostile texts stay texts on the pages of jobs, a job and a run", async () => {
  testbed = await startJobsTestbed(aHostileNight);
  for (const width of [320, 1280]) {
    const { page, complaints } = await openPage(browser, {
      width,
      scheme: "dark",
    });
    for (const path of ["/jobs", "/jobs/slow-sweep", "/jobs/slow-sweep/1"]) {
      await page.goto(`${testbed.address}${path}`);
      expect(await page.textContent("h1")).toBe("slow-sweep failed.");
      expect(await page.locator("img").count()).toBe(0);
      expect(await overflowOf(page), `${path} at ${width}`).toBe(0);
      expect(await findViolations(page)).toEqual([]);
      await takePicture(page, `hostile-${path.replaceAll("/", "-")}-${width}`);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  }
});

test("forty runs have two pages, each run its output", async () => {
  testbed = await startJobsTestbed(anOrdinaryNight);
  const { page } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/jobs/steady`);
  await takePicture(page, "job-usual");
  expect(await page.locator("tbody tr").count()).toBe(30);
  await page.getByRole("link", { name: "Older runs" }).click();
  expect(await page.locator("tbody tr").count()).toBe(10);
  await page.locator("tbody a").last().click();
  expect(await page.locator("main").innerText()).toContain('"night": 40');
  await page.getByRole("link", { name: "All jobs" }).click();
  await page.waitForURL(`${testbed.address}/jobs`);
  await page.context().close();
});

test("a job is started with options by keyboard alone, and the page follows it to its end", async () => {
  testbed = await startJobsTestbed();
  const { page, complaints } = await openPage(browser, DESK);
  await page.goto(`${testbed.address}/jobs/slow-sweep`);
  await page.locator(".ask summary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.type("attic");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  await page.keyboard.type("besom");
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "job-ask");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "slow-sweep is running." }).waitFor();
  await page.getByText('Job "slow-sweep" started.').waitFor();
  const run = await testbed.slowRun();
  expect(run.options).toEqual({ room: "attic", wet: true, broom: "besom" });
  run.progress("in the attic", 0.42);
  await page.getByText("in the attic").waitFor();
  expect(await page.locator("progress").getAttribute("value")).toBe("42");
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "job-run-at-work");
  run.end();
  await page.getByRole("heading", { name: "slow-sweep succeeded." }).waitFor();
  expect(await page.locator("pre").innerText()).toContain('"dust": 12');
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("without script a run is started, followed and stopped", async () => {
  testbed = await startJobsTestbed();
  const { page } = await openPage(browser, DESK, { javaScript: false });
  await page.goto(`${testbed.address}/jobs`);
  const job = page.locator("#job-slow-sweep");
  await job.locator("summary").click();
  await job.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("heading", { name: "slow-sweep is running." }).waitFor();
  await testbed.slowRun();
  expect(await page.content()).toContain('http-equiv="refresh" content="6"');
  await page.goto(`${testbed.address}/jobs`);
  expect(await page.textContent("h1")).toBe("slow-sweep is running.");
  await job.locator("summary").click();
  await job.getByRole("button", { name: "Stop" }).click();
  await page.getByText('Stopping job "slow-sweep".').waitFor();
  await page.goto(`${testbed.address}/jobs/slow-sweep`);
  await page
    .getByRole("heading", { name: "slow-sweep was stopped." })
    .waitFor();
  await page.context().close();
});

test("a failed action is a page with the reason and a link back", async () => {
  testbed = await startJobsTestbed();
  const { page } = await openPage(browser, DESK);
  for (const [path, sentence] of [
    [
      "/jobs/nothing",
      'Job "nothing" not found; available: slow-sweep, steady.',
    ],
    ["/jobs/steady/77", 'Run 77 of job "steady" not found.'],
  ] as const) {
    const answer = await page.goto(`${testbed.address}${path}`);
    expect(answer?.status()).toBe(404);
    await page.getByText(sentence).waitFor();
  }
  await page.getByRole("link", { name: "Go back" }).click();
  await page.waitForURL(`${testbed.address}/jobs`);
  await page.context().close();
});
