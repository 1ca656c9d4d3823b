import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";
import { passingClock } from "../../test/supervisor/passing-clock.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { configSchema } from "../config/schema.ts";
import { openHistory } from "../history/history.ts";
import { openJobHistory } from "./job-history.ts";
import { removeReports, retentionJob } from "./retention.ts";
import { JobRunner } from "./runner.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("expired reports are removed; directories and newer reports are kept", () => {
  const directory = join(place.directory, "reports");
  expect(removeReports(directory, Date.now())).toBe(0);
  mkdirSync(join(directory, "unrelated"), { recursive: true });
  const written = new Date("2025-01-01T00:00:00Z");
  for (const name of ["old.html", "old.csv", "young.html"]) {
    writeFileSync(join(directory, name), "report");
    if (name.startsWith("old")) {
      utimesSync(join(directory, name), written, written);
    }
  }
  expect(removeReports(directory, Date.parse("2026-01-01"))).toBe(2);
  expect(existsSync(join(directory, "young.html"))).toBe(true);
  expect(existsSync(join(directory, "unrelated"))).toBe(true);
});

test("a clock that is years ahead for one run deletes nothing; years later the second run does", async () => {
  const start = Date.UTC(2026, 10, 21);
  const clock = passingClock(start);
  const onNotice = (sentence: string) => expect.fail(sentence);
  const { home } = place;
  const report = join(home.reports, "spend.html");
  mkdirSync(home.reports, { recursive: true });
  writeFileSync(report, "report");
  utimesSync(report, start / 1000, start / 1000);
  const history = openHistory(home.history);
  const runner = new JobRunner({
    history: openJobHistory(history.db, onNotice),
    clock,
    timeZone: "UTC",
    scheduled: true,
    alarms: alarmsIn(new Map()),
  });
  runner.add(
    retentionJob({ config: configSchema.parse({}), history, home, onNotice }),
  );
  runner.start();
  await clock.pass(start + 2 * DAY_MS);
  clock.jump(start + 1000 * DAY_MS);
  await clock.pass(clock.now() + DAY_MS / 4);
  clock.jump(start + 3 * DAY_MS);
  await clock.pass(clock.now() + 2 * DAY_MS);
  expect(existsSync(report)).toBe(true);
  clock.jump(start + 1000 * DAY_MS);
  await clock.pass(clock.now() + 2 * DAY_MS);
  expect(existsSync(report)).toBe(false);
  await runner.stop();
  history.close();
});
