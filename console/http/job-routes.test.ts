import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { backupName, writeManifest } from "../../supervisor/backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import { systemClock } from "../../supervisor/jobs/clock.ts";
import {
  ASKED_BY_COLUMN,
  JOB_TABLES,
  openJobHistory,
} from "../../supervisor/jobs/job-history.ts";
import { JobRunner, type RunView } from "../../supervisor/jobs/runner.ts";
import type { PeriodChoice } from "../../supervisor/reports/period.ts";
import { usualSpend } from "../../test/supervisor/report-samples.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../test/wait-for.ts";
import { registerBackupRoutes } from "./backup-routes.ts";
import { registerJobRoutes } from "./job-routes.ts";
import { registerReportRoutes } from "./report-routes.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

let place: ReturnType<typeof temporaryHome>;
let server: FastifyInstance;
let choices: PeriodChoice[];

beforeEach(() => {
  place = temporaryHome();
  choices = [];
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES}; ${ASKED_BY_COLUMN}`);
  const jobs = new JobRunner({
    history: openJobHistory(db, (sentence) => expect.fail(sentence)),
    alarms: alarmsIn(new Map()),
    clock: systemClock,
    timeZone: "UTC",
    scheduled: false,
  });
  const schedule = { cron: null, timeoutMs: 60_000, retries: 0 };
  jobs.add({
    name: "sweep-all",
    description: "Sweeps.",
    schedule,
    check: ({ broom }) => {
      if (broom === "none") {
        throw new Failure("no broom is configured: set BROOM.");
      }
    },
    run: async ({ signal, progress, options }) => {
      progress("sweeping", 0.25);
      if (options["wait"] === true) {
        await new Promise((resolve) =>
          signal.addEventListener("abort", resolve),
        );
      }
      signal.throwIfAborted();
      return { status: "done", summary: `swept with ${options["broom"]}.` };
    },
  });
  server = Fastify();
  registerJobRoutes(server, jobs);
  registerBackupRoutes(server, join(place.directory, "backups"), undefined);
  registerReportRoutes(server, {
    makeReport: async (_kind, choice) => {
      choices.push(choice);
      if (choice.since === "never") {
        throw new Failure("never is no time.");
      }
      return usualSpend();
    },
  });
});
afterEach(async () => {
  await server.close();
  place.remove();
});

async function ask(method: "GET" | "POST", url: string, payload?: object) {
  const answer = await server.inject({
    method,
    url,
    ...(payload === undefined ? {} : { payload }),
  });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    text: answer.body,
  };
}

async function ended(id: number): Promise<RunView> {
  return waitFor("the run to end", async () => {
    const { text } = await ask("GET", `/api/job-runs/${id}`);
    const run = JSON.parse(text) as RunView;
    return run.status !== "running" && run;
  });
}

test("a job runs with options, by either spelling of its name, and can be followed to its end", async () => {
  const started = await ask("POST", "/api/jobs/sweep_all/run", {
    options: { broom: "a besom" },
  });
  expect(started.status).toBe(202);
  const run = await ended((JSON.parse(started.text) as RunView).id);
  expect(run).toMatchObject({ status: "done", text: "swept with a besom." });
  const { text } = await ask("GET", "/api/jobs");
  expect(JSON.parse(text)).toMatchObject({
    jobs: [{ name: "sweep-all", running: null, last: { status: "done" } }],
  });
});

test("a request that no run can fulfil is answered with the reason, without a run", async () => {
  const rejected = await ask("POST", "/api/jobs/sweep-all/run", {
    options: { broom: "none" },
  });
  expect(rejected.status).toBe(400);
  expect(rejected.text).toContain("no broom is configured: set BROOM.");
  expect((await ask("GET", "/api/jobs/sweep-all/runs")).text).toBe(
    '{"runs":[]}',
  );
});

test("a running job shows its progress, does not start twice, and can be stopped", async () => {
  const started = await ask("POST", "/api/jobs/sweep-all/run", {
    options: { wait: true },
  });
  const { id } = JSON.parse(started.text) as RunView;
  await waitFor("progress", async () => {
    const { text } = await ask("GET", `/api/job-runs/${id}`);
    return (JSON.parse(text) as RunView).progress?.done === 0.25;
  });
  expect((await ask("POST", "/api/jobs/sweep-all/run")).status).toBe(409);
  expect((await ask("POST", "/api/jobs/sweep-all/stop")).text).toBe(
    '{"stopped":true}',
  );
  expect(await ended(id)).toMatchObject({ status: "stopped" });
  const { text } = await ask("GET", "/api/jobs/sweep-all/runs");
  expect(JSON.parse(text)).toMatchObject({ runs: [{ status: "stopped" }] });
});

test.each([
  [
    "GET",
    "/api/jobs/swep/runs",
    404,
    'job "swep" not found; available: sweep-all.',
  ],
  [
    "POST",
    "/api/jobs/swep/run",
    404,
    'job "swep" not found; available: sweep-all.',
  ],
  ["GET", "/api/job-runs/99", 404, "run 99 not found."],
  [
    "GET",
    "/api/peer-copies",
    409,
    "no other host is configured; set HEARTH_PEER_URL to the address of its supervisor.",
  ],
  [
    "GET",
    "/api/reports/wealth",
    404,
    "report not found; available: spend, health.",
  ],
  [
    "GET",
    "/api/reports/spend?format=pdf",
    400,
    "format: must be text, json, csv or html.",
  ],
  ["GET", "/api/reports/spend?since=never", 502, "never is no time."],
] as const)(
  "%s %s is rejected with one sentence",
  async (method, url, status, message) => {
    const answer = await ask(method, url);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { message } });
  },
);

test("a report is created for the requested days in the requested format", async () => {
  const csv = await ask("GET", "/api/reports/spend?format=csv&since=30d");
  expect(csv.headers["content-type"]).toBe("text/csv; charset=utf-8");
  expect(csv.text).toContain("provider,anthropic,anthropic");
  await ask("GET", "/api/reports/spend?period=week&last=true");
  expect(choices).toEqual([
    { unit: "month", complete: false, since: "30d" },
    { unit: "week", complete: true, since: undefined },
  ]);
});

test("backups are listed newest first, with their problems", async () => {
  const names = [19, 20, 21].map((day) => {
    const takenAt = Date.UTC(2026, 10, day, 3);
    const backup = join(
      place.directory,
      "backups",
      "postgres",
      backupName(takenAt),
    );
    mkdirSync(backup, { recursive: true });
    writeManifest(backup, {
      format: 1,
      kind: "postgres",
      takenAt,
      files: [{ name: "rows.gz", bytes: 2, sha256: "0".repeat(64) }],
    });
    writeFileSync(join(backup, "rows.gz"), "12");
    return backup;
  });
  rmSync(join(names[0] ?? "", "rows.gz"));
  writeFileSync(join(names[1] ?? "", "manifest.json"), "{}");
  const { text } = await ask("GET", "/api/backups");
  expect(JSON.parse(text)).toMatchObject({
    backups: [
      { name: "2026-11-21T030000Z", kind: "postgres", problem: null },
      {
        name: "2026-11-20T030000Z",
        problem: expect.stringContaining("has changed since it was written"),
      },
      {
        name: "2026-11-19T030000Z",
        problem: expect.stringContaining("rows.gz is missing"),
      },
    ],
  });
});
