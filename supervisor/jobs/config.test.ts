import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadConfig, shippedConfig } from "../config/load.ts";
import { configSchema } from "../config/schema.ts";
import { Failure } from "../../core/failure.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

function load(text: string) {
  const path = join(place.directory, "supervisor.yaml");
  writeFileSync(path, text);
  return loadConfig([path], () => undefined).config.jobs;
}

function errorsOf(text: string): readonly string[] {
  try {
    load(text);
    return [];
  } catch (error) {
    if (error instanceof Failure) {
      return error.sentences.map((each) =>
        each.slice(place.directory.length + 1),
      );
    }
    throw error;
  }
}

test("the shipped file lists the default settings of the jobs", () => {
  const lines = readFileSync(shippedConfig, "utf8").split("\n");
  const begin = lines.indexOf("# jobs:");
  const end = lines.findIndex((line, at) => at > begin && line === "");
  const block = lines
    .slice(begin, end)
    .map((line) => line.replace(/^# /, ""))
    .join("\n");
  const { time_zone, ...jobs } = load(block);
  expect(time_zone).toBe("Europe/Berlin");
  const { time_zone: _own, ...defaults } = configSchema.parse({}).jobs;
  expect({ ...defaults, ...jobs }).toEqual(defaults);
  expect(block.match(/^ {2}\w+:/gm)).toHaveLength(11);
});

test("every mistake is reported at once, with its line and the likely name", () => {
  expect(
    errorsOf(`jobs:
  time_zone: Berlin
  postgres_backup: { cron: "0 3 * *" }
  restore_drill: { cron: "0 25 * * *", retries: 11 }
  ledger_chekc: { cron: off }
  backup_copy: { accept_at_most: 50 }
  retention: { raw: soon }
  spend_report: { perid: week }
`),
  ).toEqual([
    'supervisor.yaml:2: jobs.time_zone: must be a time zone such as Europe/Berlin; it is "Berlin"',
    'supervisor.yaml:3: jobs.postgres_backup.cron: "0 3 * *" must have five fields: minute, hour, day of month, month, day of week, such as "0 4 1 * *"',
    expect.stringMatching(
      /^supervisor\.yaml:4: jobs\.restore_drill\.cron: "0 25 \* \* \*" is not a valid schedule \(.+\)$/,
    ),
    "supervisor.yaml:4: jobs.restore_drill.retries: must be a whole number from 0 to 10; it is 11",
    'supervisor.yaml:5: jobs: unknown setting "ledger_chekc" (did you mean "ledger_check"?)',
    "supervisor.yaml:6: jobs.backup_copy.accept_at_most: must be a size such as 500MB, 20GB or 1TB; it is 50",
    'supervisor.yaml:7: jobs.retention.raw: must be a duration such as 500ms, 30s, 2m, 1h or 7d; it is "soon"',
    'supervisor.yaml:8: jobs.spend_report: unknown setting "perid" (did you mean "period"?)',
  ]);
});

test("a job that is off runs only on demand; a time that never occurs is a mistake", () => {
  const jobs = load(`jobs:
  spend_report: { cron: off }
`);
  expect(jobs.spend_report).toMatchObject({ cron: null, period: "month" });
  expect(errorsOf('jobs:\n  retention: { cron: "0 1 31 2 *" }\n')).toEqual([
    'supervisor.yaml:2: jobs.retention.cron: "0 1 31 2 *" never occurs',
  ]);
});
