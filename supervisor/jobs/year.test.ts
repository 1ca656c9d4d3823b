import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Alarms } from "../alerts/alarm.ts";
import { passingClock } from "../../test/supervisor/passing-clock.ts";
import { jobTables, openJobHistory } from "./job-history.ts";
import { openJobRunner } from "./runner.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const berlin = "Europe/Berlin";
const silent: Alarms = { raise: () => {}, clear: () => {} };

type Ran = {
  readonly job: string;
  readonly due: number | null;
  readonly caughtUp: boolean;
};

/** Runs jobs from one moment to another, with the supervisor ended and begun again between the parts of the time. */
async function live(
  jobs: Readonly<Record<string, string>>,
  parts: readonly { readonly from: number; readonly until: number }[],
  workMs: number = 5 * minute,
): Promise<readonly Ran[]> {
  const db = new DatabaseSync(":memory:");
  db.exec(jobTables);
  const clock = passingClock(parts[0]?.from ?? 0);
  for (const { from, until } of parts) {
    clock.jump(from);
    const runner = openJobRunner({
      history: openJobHistory(db, (sentence) => expect.fail(sentence)),
      ...{ alarms: silent, clock, timeZone: berlin, scheduled: true },
    });
    for (const [name, cron] of Object.entries(jobs))
      runner.add({
        ...{ name, description: name },
        schedule: { cron, timeoutMs: hour, retries: 0 },
        run: async ({ now }) => {
          const ready = Promise.withResolvers<void>();
          clock.wakeAt(now() + workMs, ready.resolve);
          await ready.promise;
          return { status: "done", summary: "did it" };
        },
      });
    runner.begin();
    await clock.pass(until);
    // As kill -9 does: nothing is said to anybody.
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
  ...{ timeZone: berlin, dateStyle: "short", timeStyle: "short" },
});

/** What a wall clock in Berlin shows, worked out by Intl rather than by the scheduler. */
function wallClock(at: number): string {
  return berlinTime.format(at);
}

const newYear = Date.UTC(2026, 0, 1) - hour;
const nextNewYear = Date.UTC(2027, 0, 1) - hour;

test("over a year each job runs at each of its times, once", async () => {
  const ran = await live(
    { nightly: "0 4 * * *", monthly: "0 8 1 * *", weekly: "30 5 * * 1" },
    [{ from: newYear, until: nextNewYear - 1 }],
  );
  const dueOf = (job: string) =>
    ran.filter((run) => run.job === job).map((run) => run.due);
  // Far from the hours that move, so the wall clock alone tells; by hours, to be quick.
  const hours = Array.from(
    { length: (nextNewYear - newYear) / hour },
    (_, index) => newYear + index * hour,
  );
  const nights = hours.filter((at) => wallClock(at).endsWith(" 04:00"));
  expect(nights).toHaveLength(365);
  expect(dueOf("nightly")).toEqual(nights);
  expect(dueOf("monthly")).toEqual(
    hours.filter((at) => /-01 08:00$/.test(wallClock(at))),
  );
  const mondays = hours
    .map((at) => at + 30 * minute)
    .filter(
      (at) =>
        wallClock(at).endsWith(" 05:30") &&
        new Date(`${wallClock(at).slice(0, 10)}T12:00:00Z`).getUTCDay() === 1,
    );
  expect(dueOf("weekly")).toEqual(mondays);
  expect(ran.some(({ caughtUp }) => caughtUp)).toBe(false);
});

test("a time that the clock skips in spring runs right after the gap, one that comes twice in autumn runs once", async () => {
  const spring = Date.UTC(2026, 2, 29);
  const autumn = Date.UTC(2026, 9, 25);
  const jobs = { fixed: "30 2 * * *", hourly: "0 * * * *" };
  const inSpring = await live(jobs, [
    { from: spring - hour, until: spring + 22 * hour - 1 },
  ]);
  const inAutumn = await live(jobs, [
    { from: autumn - 2 * hour, until: autumn + 23 * hour - 1 },
  ]);
  const fixed = (ran: readonly Ran[]) =>
    ran.filter(({ job }) => job === "fixed").map(({ due }) => due);
  expect(fixed(inSpring)).toEqual([spring + hour]);
  expect(wallClock(spring + hour)).toBe("2026-03-29 03:00");
  expect(fixed(inAutumn)).toEqual([autumn + 30 * minute]);
  // What runs every hour runs every hour that passes: 23 of them on the one day, 25 on the other.
  const hourly = (ran: readonly Ran[]) =>
    ran.filter(({ job }) => job === "hourly").map(({ due }) => due);
  const everyHour = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => from + index * hour);
  expect(hourly(inSpring)).toEqual(everyHour(spring, 22));
  expect(hourly(inAutumn)).toEqual(everyHour(autumn - hour, 24));
});

test("what was missed while the machine was off is caught up once, at the next start", async () => {
  const from = Date.UTC(2026, 5, 1);
  const ran = await live({ nightly: "0 4 * * *", yearly: "0 8 1 1 *" }, [
    { from, until: from + 3 * day },
    { from: from + 10 * day, until: from + 12 * day },
  ]);
  const at = (days: number) => from + days * day + 2 * hour;
  expect(ran).toEqual([
    ...[0, 1, 2].map((days) => ({
      ...{ job: "nightly", due: at(days), caughtUp: false },
    })),
    // Seven nights were missed: one run, for the last of them.
    { job: "nightly", due: at(9), caughtUp: true },
    ...[10, 11].map((days) => ({
      ...{ job: "nightly", due: at(days), caughtUp: false },
    })),
  ]);
});

test("a restart between two times runs nothing, one in the middle of a run begins it once more", async () => {
  const from = Date.UTC(2026, 5, 1);
  const ran = await live(
    { nightly: "0 4 * * *" },
    [
      { from, until: from + hour },
      { from: from + hour, until: from + 2 * hour + 2 * minute },
      // Killed in the middle of the run, and again in the middle of the repeated one.
      { from: from + 3 * hour, until: from + 3 * hour + 3 * minute },
      { from: from + 4 * hour, until: from + day },
      { from: from + day, until: from + day + hour },
    ],
    5 * minute,
  );
  const due = from + 2 * hour;
  expect(ran).toEqual([
    { job: "nightly", due, caughtUp: false },
    { job: "nightly", due, caughtUp: true },
  ]);
});

test("a machine that sleeps through three nights runs one job when it wakes", async () => {
  const db = new DatabaseSync(":memory:");
  db.exec(jobTables);
  const from = Date.UTC(2026, 5, 1);
  const clock = passingClock(from);
  const history = openJobHistory(db, (sentence) => expect.fail(sentence));
  const runner = openJobRunner({
    ...{ history, alarms: silent, clock, timeZone: berlin, scheduled: true },
  });
  runner.add({
    ...{ name: "nightly", description: "nightly" },
    schedule: { cron: "0 4 * * *", timeoutMs: hour, retries: 0 },
    run: async () => ({ status: "done", summary: "did it" }),
  });
  runner.begin();
  clock.jump(from + 3 * day + hour);
  await clock.pass(from + 3 * day + 3 * hour);
  expect(runner.runsOf("nightly", 9).map(({ due }) => due)).toEqual([
    from + 3 * day + 2 * hour,
    from + 2 * day + 2 * hour,
  ]);
});

test("a year of restarts and days off: what was due while it ran ran, each time off is caught up by one run", async () => {
  const nights = Array.from(
    { length: 366 },
    (_, index) => newYear + index * day,
  )
    .flatMap((midnight) => [midnight - hour, midnight, midnight + hour])
    .map((midnight) => midnight + 4 * hour)
    .filter((at) => wallClock(at).endsWith(" 04:00"))
    .filter((at) => at < nextNewYear);
  // Pauses of nothing up to nine days, by a fixed row of numbers that looks like none.
  const parts: { from: number; until: number }[] = [];
  let at = newYear;
  for (let index = 1; at < nextNewYear; index += 1) {
    const runs = ((index * 7919) % 13) * 31 * hour + 2 * hour;
    const rests = ((index * 104_729) % 7) * 37 * hour + 10 * minute;
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
