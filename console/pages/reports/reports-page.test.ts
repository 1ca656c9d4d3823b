import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Failure } from "../../../core/failure.ts";
import { systemClock } from "../../../supervisor/jobs/clock.ts";
import {
  ASKED_BY_COLUMN,
  JOB_TABLES,
  openJobHistory,
} from "../../../supervisor/jobs/job-history.ts";
import { JobRunner } from "../../../supervisor/jobs/runner.ts";
import {
  choosePeriod,
  InvalidPeriod,
  type PeriodChoice,
} from "../../../supervisor/reports/period.ts";
import type { MakeReport } from "../../../supervisor/reports/reporting.ts";
import { usualSpend } from "../../../test/supervisor/report-samples.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { registerReportRoutes } from "../../http/report-routes.ts";
import { registerReportsPage } from "./reports-page.ts";
import { alarmsIn } from "../../../test/supervisor/raised-alarms.ts";

let place: ReturnType<typeof temporaryHome>;
let directory: string;
let server: FastifyInstance;
let choices: PeriodChoice[];
/** Throws what reports of health fail with. */
let failure: () => void;

beforeEach(() => {
  place = temporaryHome();
  directory = join(place.directory, "reports");
  choices = [];
  failure = () => {
    throw new Failure("there are no checks yet.");
  };
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES}; ${ASKED_BY_COLUMN}`);
  const jobs = new JobRunner({
    history: openJobHistory(db, (sentence) => expect.fail(sentence)),
    alarms: alarmsIn(new Map()),
    clock: systemClock,
    timeZone: "UTC",
    scheduled: false,
  });
  server = Fastify();
  server.decorate("hearth", "npx hearth");
  server.decorateRequest("signedIn", false);
  server.decorateRequest("requester", null);
  const makeReport: MakeReport = async (kind, choice) => {
    choices.push(choice);
    if (kind === "health") {
      failure();
    }
    return usualSpend();
  };
  registerReportsPage(server, { directory, timeZone: "UTC", jobs, makeReport });
  registerReportRoutes(server, { makeReport });
});
afterEach(async () => {
  await server.close();
  place.remove();
});

async function get(url: string, accept = "text/html") {
  const { statusCode, headers, body } = await server.inject({
    method: "GET",
    url,
    headers: { accept },
  });
  return { status: statusCode, headers, text: body };
}

test("without reports, the page names the command that creates one", async () => {
  const { text } = await get("/reports/");
  expect(text).toContain("No reports yet.");
  expect(text).toContain("npx hearth jobs run spend-report");
});

test("reports are listed newest first and shown without script", async () => {
  mkdirSync(directory);
  for (const name of [
    "health-2026-11-09-to-2026-11-15.html",
    "spend-2026-10-01-to-2026-10-31.csv",
    "spend-2026-10-01-to-2026-10-31.html",
    "notes.txt",
  ]) {
    writeFileSync(join(directory, name), "<p>kept</p>");
  }
  const { text } = await get("/reports/");
  expect(text).toContain("2 reports.");
  expect(text.indexOf("health-2026")).toBeLessThan(text.indexOf("spend-2026"));
  expect(text).toContain("9 Nov 2026 to 15 Nov 2026, 7 days");
  expect(text).toContain("October 2026");
  expect(text).not.toContain("notes.txt");
  const shown = await get("/reports/health-2026-11-09-to-2026-11-15.html");
  expect(shown.text).toBe("<p>kept</p>");
  const policy = shown.headers["content-security-policy"];
  expect(policy).toMatch(/^default-src 'none';/);
  expect(policy).not.toContain("script");
});

test("many reports have several pages", async () => {
  mkdirSync(directory);
  for (let day = 1; day <= 60; day += 1) {
    const date = new Date(Date.UTC(2026, 8, day)).toISOString().slice(0, 10);
    writeFileSync(join(directory, `health-${date}.html`), "");
  }
  const first = await get("/reports/");
  expect(first.text).toContain("30 Oct 2026");
  expect(first.text).toContain('href="/reports/?from=50"');
  const second = await get("/reports/?from=50");
  expect(second.text).toContain("10 Sept 2026");
  expect(second.text).not.toContain("11 Sept 2026");
  expect(second.text).toContain('href="/reports/?from=0"');
});

test.each(["..%2Fsecrets.json", "spend-2026-10-01.html", "%3Cimg%3E"])(
  "%s is not found: a page for browsers, JSON for programs",
  async (file) => {
    const page = await get(`/reports/${file}`);
    expect(page.status).toBe(404);
    expect(page.text).toContain("not found.");
    expect(page.text).not.toContain("<img>");
    const answer = await get(`/reports/${file}`, "*/*");
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { message: "report not found." },
    });
  },
);

test.each([
  ["period=last-month", { unit: "month", complete: true }],
  ["period=week&since=", { unit: "week", complete: false }],
  [
    "period=since&since=2026-11-01",
    { unit: "day", complete: false, since: "2026-11-01" },
  ],
])("the form creates the report of %s", async (query, choice) => {
  const { text, headers } = await get(
    `/reports/now?kind=spend&format=csv&${query}`,
  );
  expect(choices).toEqual([choice]);
  expect(headers["content-type"]).toBe("text/csv; charset=utf-8");
  expect(text).toContain("provider,anthropic,anthropic");
});

test("a mistake is shown at its field, with the typed values", async () => {
  const { status, text } = await get(
    "/reports/now?kind=spend&period=since&format=csv",
  );
  expect(status).toBe(400);
  expect(text).toContain("date is required");
  expect(text).toContain('<option value="csv" selected>');
  const wrong = await get("/reports/now?kind=wealth&period=month");
  expect(wrong.text).toContain("must be spend or health");
  expect(wrong.text).toContain("<h1>No report was created.</h1>");
});

test("a report of invalid days is the request's fault, not the server's", async () => {
  const since = { unit: "day", complete: false, since: "9999-01-01" } as const;
  const invalid = () => choosePeriod(since, "2026-11-21");
  expect(invalid).toThrow(InvalidPeriod);
  failure = invalid;
  const { status, text } = await get(
    "/reports/now?kind=health&period=since&since=9999-01-01",
  );
  expect(status).toBe(400);
  expect(text).toContain("not after today");
  const api = await get("/api/reports/health?since=9999-01-01");
  expect(api.status).toBe(400);
  expect(JSON.parse(api.text)).toMatchObject({
    error: { message: expect.stringContaining("not after today") },
  });
});

test("a report that cannot be created is an error page with the reason", async () => {
  const { status, text } = await get("/reports/now?kind=health&period=week");
  expect(status).toBe(502);
  expect(text).toContain("There are no checks yet.");
});
