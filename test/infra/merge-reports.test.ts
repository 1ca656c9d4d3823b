import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { inProject } from "../../infra/project-files.ts";
import { mergeReports } from "./merge-reports.ts";

const directory = mkdtempSync(join(tmpdir(), "hearth-reports-"));
afterAll(() => rmSync(directory, { recursive: true }));

function reportOf(scenario: string, passed: number, failed: number) {
  const report = join(directory, `${scenario}-${passed}-${failed}.json`);
  const tests = (count: number, status: string) =>
    Array.from({ length: count }, () => ({ status }));
  writeFileSync(
    report,
    JSON.stringify({
      testResults: [
        {
          name: scenario,
          status: failed > 0 ? "failed" : "passed",
          assertionResults: [
            ...tests(passed, "passed"),
            ...tests(failed, "failed"),
          ],
        },
      ],
    }),
  );
  return { group: [scenario], report };
}

/** What .ci/run reads from reports: "<passed> <failed>", then the failed files. */
function count(...reports: readonly string[]): readonly string[] {
  return execFileSync(
    process.execPath,
    [inProject(".ci/count.js"), ...reports],
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
  )
    .trim()
    .split("\n");
}

function merged(...runs: Parameters<typeof mergeReports>[0]): string {
  const file = join(directory, "merged.json");
  mergeReports(runs, file);
  return file;
}

test("the tests of all runs are counted", () => {
  const runs = merged(reportOf("up", 3, 0), reportOf("loss", 2, 1));
  expect(count(runs)).toEqual(["5 1", "loss"]);
});

test("a run without a report is one failure", () => {
  const lost = { group: ["data"], report: join(directory, "none.json") };
  const runs = merged(reportOf("up", 3, 0), lost);
  expect(count(runs)).toEqual(["3 1", "data"]);
});

test("the second run of a file counts", () => {
  const first = merged(reportOf("up", 3, 0), reportOf("loss", 2, 1));
  expect(count(first, reportOf("loss", 3, 0).report)).toEqual(["6 0"]);
  expect(count(first, reportOf("loss", 1, 2).report)).toEqual(["4 2", "loss"]);
});

test("skipped tests and files without tests are failures", () => {
  const skipped = join(directory, "skipped.json");
  const testResults = [
    {
      name: "some",
      status: "passed",
      assertionResults: [{ status: "passed" }, { status: "skipped" }],
    },
    { name: "none", status: "passed", assertionResults: [] },
  ];
  writeFileSync(skipped, JSON.stringify({ testResults }));
  expect(count(skipped)).toEqual(["1 2", "some", "none"]);
});
