import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import { passingClock } from "../../test/supervisor/passing-clock.ts";
import { ASKED_BY_COLUMN, JOB_TABLES, openJobHistory } from "./job-history.ts";
import { JobRunner } from "./runner.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

const BERLIN = "Europe/Berlin";
const silent = alarmsIn(new Map());

interface Ran {
  readonly job: string;
  readonly due: number | null;
  readonly caughtUp: boolean;
}

/** Runs jobs over a time range, with restarts of the supervisor between its parts. */
async function live(
  jobs: Readonly<Record<string, string>>,
  parts: readonly { readonly from: number; readonly until: number }[],
  workMs: number = 5 * MINUTE_MS,
): Promise<readonly Ran[]> {
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES}; ${ASKED_BY_COLUMN}`);
  const clock = passingClock(parts[0]?.from ?? 0);
  for (const { from, until } of parts) {
    clock.jump(from);
    const runner = new JobRunner({
      history: openJobHistory(db, (sentence) => expect.fail(sentence)),
      alarms: silent,
      clock,
      timeZone: BERLIN,
      scheduled: true,
    });
    for (const [name, cron] of Object.entries(jobs)) {
      runner.add({
        name,
        description: name,
        schedule: { cron, timeoutMs: HOUR_MS, retries: 0 },
        run: async ({ now }) => {
          const ready = Promise.withResolvers<void>();
          clock.wakeAt(now() + workMs, ready.resolve);
          await ready.promise;
          return { status: "done", summary: "did it" };
        },
      });
    }
    runner.start();
    await clock.pass(until);
    // Like kill -9: without a clean end.
    clock.forget();
  }
  return db
    .prepare("SELECT job, due, caught_up FROM job_runs ORDER BY id")
    .all()
    .map((row) => ({
      job: String(row["job"]),
      due: row["due"] === null ? null : Number(row["due"]),
      caughtUp: row["caught_up"] === 1,
    }));
}

const berlinTime = new Intl.DateTimeFormat("sv-SE", {
  timeZone: BERLIN,
  dateStyle: "short",
  timeStyle: "short",
});

/** The local time in Berlin, computed by Intl instead of the scheduler. */
function wallClock(at: number): string {
  return berlinTime.format(at);
}

const newYear = Date.UTC(2026, 0, 1) - HOUR_MS;
const nextNewYear = Date.UTC(2027, 0, 1) - HOUR_MS;

test("over a year each job runs exactly once at each of its times", async () => {
  const ran = await live(
    { nightly: "0 4 * * *", monthly: "0 8 1 * *", weekly: "30 5 * * 1" },
    [{ from: newYear, until: nextNewYear - 1 }],
  );
  const dueOf = (job: string) =>
    ran.filter((run) => run.job === job).map((run) => run.due);
  // Far from daylight saving changes, so local time suffices; in steps of hours, to be fast.
  const hours = Array.from(
    { length: (nextNewYear - newYear) / HOUR_MS },
    (_, index) => newYear + index * HOUR_MS,
  );
  const nights = hours.filter((at) => wallClock(at).endsWith(" 04:00"));
  expect(nights).toHaveLength(365);
  expect(dueOf("nightly")).toEqual(nights);
  expect(dueOf("monthly")).toEqual(
    hours.filter((at) => /-01 08:00$/.test(wallClock(at))),
  );
  const mondays = hours
    .map((at) => at + 30 * MINUTE_MS)
    .filter(
      (at) =>
        wallClock(at).endsWith(" 05:30") &&
        new Date(`${wallClock(at).slice(0, 10)}T12:00:00Z`).getUTCDay() === 1,
    );
  expect(dueOf("weekly")).toEqual(mondays);
  expect(ran.some(({ caughtUp }) => caughtUp)).toBe(false);
});

test("a time that is skipped in spring runs right after the gap, one that occurs twice in autumn runs once", async () => {
  const spring = Date.UTC(2026, 2, 29);
  const autumn = Date.UTC(2026, 9, 25);
  const jobs = { fixed: "30 2 * * *", hourly: "0 * * * *" };
  const inSpring = await live(jobs, [
    { from: spring - HOUR_MS, until: spring + 22 * HOUR_MS - 1 },
  ]);
  const inAutumn = await live(jobs, [
    { from: autumn - 2 * HOUR_MS, until: autumn + 23 * HOUR_MS - 1 },
  ]);
  const fixed = (ran: readonly Ran[]) =>
    ran.filter(({ job }) => job === "fixed").map(({ due }) => due);
  expect(fixed(inSpring)).toEqual([spring + HOUR_MS]);
  expect(wallClock(spring + HOUR_MS)).toBe("2026-03-29 03:00");
  expect(fixed(inAutumn)).toEqual([autumn + 30 * MINUTE_MS]);
  // An hourly job runs in every real hour: 23 times on the one day, 25 times on the other.
  const hourly = (ran: readonly Ran[]) =>
    ran.filter(({ job }) => job === "hourly").map(({ due }) => due);
  const everyHour = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => from + index * HOUR_MS);
  expect(hourly(inSpring)).toEqual(everyHour(spring, 22));
  expect(hourly(inAutumn)).toEqual(everyHour(autumn - HOUR_MS, 24));
});

test("missed runs are caught up by one run at the next start", async () => {
  const from = Date.UTC(2026, 5, 1);
  const ran = await live({ nightly: "0 4 * * *", yearly: "0 8 1 1 *" }, [
    { from, until: from + 3 * DAY_MS },
    { from: from + 10 * DAY_MS, until: from + 12 * DAY_MS },
  ]);
  const at = (days: number) => from + days * DAY_MS + 2 * HOUR_MS;
  expect(ran).toEqual([
    ...[0, 1, 2].map((days) => ({
      job: "nightly",
      due: at(days),
      caughtUp: false,
    })),
    // Seven nights were missed: one run, for the last of them.
    { job: "nightly", due: at(9), caughtUp: true },
    ...[10, 11].map((days) => ({
      job: "nightly",
      due: at(days),
      caughtUp: false,
    })),
  ]);
});

test("a restart between two times runs nothing, one during a run repeats it once", async () => {
  const from = Date.UTC(2026, 5, 1);
  const ran = await live(
    { nightly: "0 4 * * *" },
    [
      { from, until: from + HOUR_MS },
      { from: from + HOUR_MS, until: from + 2 * HOUR_MS + 2 * MINUTE_MS },
      // Killed during the run, and again during its repetition.
      { from: from + 3 * HOUR_MS, until: from + 3 * HOUR_MS + 3 * MINUTE_MS },
      { from: from + 4 * HOUR_MS, until: from + DAY_MS },
      { from: from + DAY_MS, until: from + DAY_MS + HOUR_MS },
    ],
    5 * MINUTE_MS,
  );
  const due = from + 2 * HOUR_MS;
  expect(ran).toEqual([
    { job: "nightly", due, caughtUp: false },
    { job: "nightly", due, caughtUp: true },
  ]);
});

test("a machine that sleeps through three nights runs a job once after waking", async () => {
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES}; ${ASKED_BY_COLUMN}`);
  const from = Date.UTC(2026, 5, 1);
  const clock = passingClock(from);
  const history = openJobHistory(db, (sentence) => expect.fail(sentence));
  const runner = new JobRunner({
    history,
    alarms: silent,
    clock,
    timeZone: BERLIN,
    scheduled: true,
  });
  runner.add({
    name: "nightly",
    description: "nightly",
    schedule: { cron: "0 4 * * *", timeoutMs: HOUR_MS, retries: 0 },
    run: async () => ({ status: "done", summary: "did it" }),
  });
  runner.start();
  clock.jump(from + 3 * DAY_MS + HOUR_MS);
  await clock.pass(from + 3 * DAY_MS + 3 * HOUR_MS);
  expect(runner.runsOf("nightly", 9).map(({ due }) => due)).toEqual([
    from + 3 * DAY_MS + 2 * HOUR_MS,
    from + 2 * DAY_MS + 2 * HOUR_MS,
  ]);
});

test("a year of restarts and downtimes: all due runs happen, and each downtime is caught up by one run", async () => {
  const nights = Array.from(
    { length: 366 },
    (_, index) => newYear + index * DAY_MS,
  )
    .flatMap((midnight) => [midnight - HOUR_MS, midnight, midnight + HOUR_MS])
    .map((midnight) => midnight + 4 * HOUR_MS)
    .filter((at) => wallClock(at).endsWith(" 04:00"))
    .filter((at) => at < nextNewYear);
  // Pauses of up to nine days, from a fixed pseudo-random sequence.
  const parts: { from: number; until: number }[] = [];
  let at = newYear;
  for (let index = 1; at < nextNewYear; index += 1) {
    const runs = ((index * 7919) % 13) * 31 * HOUR_MS + 2 * HOUR_MS;
    const rests = ((index * 104_729) % 7) * 37 * HOUR_MS + 10 * MINUTE_MS;
    parts.push({ from: at, until: Math.min(at + runs, nextNewYear) });
    at += runs + rests;
  }
  const expected = parts.flatMap(({ from, until }, index) => {
    const before = parts[index - 1]?.until ?? from;
    const missed = nights.filter((due) => due > before && due <= from).at(-1);
    return [
      ...(missed === undefined
        ? []
        : [{ job: "nightly", due: missed, caughtUp: true }]),
      ...nights
        .filter((due) => due > from && due <= until)
        .map((due) => ({ job: "nightly", due, caughtUp: false })),
    ];
  });
  expect(expected.filter(({ caughtUp }) => caughtUp).length).toBeGreaterThan(5);
  const ran = await live({ nightly: "0 4 * * *" }, parts, 0);
  expect(ran).toEqual(expected);
});
