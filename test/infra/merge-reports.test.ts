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
  const report = join(directory, `${scenario}.json`);
  writeFileSync(
    report,
    JSON.stringify({
      numTotalTests: passed + failed,
      numPassedTests: passed,
      numFailedTests: failed,
      numPendingTests: 0,
      numTodoTests: 0,
      testResults: [
        {
          name: scenario,
          status: failed > 0 ? "failed" : "passed",
          assertionResults: [{ status: failed > 0 ? "failed" : "passed" }],
        },
      ],
    }),
  );
  return { scenario, report };
}

/** "<passed> <failed>" as .ci/run counts them. */
function count(...runs: Parameters<typeof mergeReports>[0]): string {
  const merged = join(directory, "merged.json");
  mergeReports(runs, merged);
  return execFileSync(process.execPath, [inProject(".ci/count.js"), merged], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
}

test("the tests of all runs are counted", () => {
  expect(count(reportOf("up", 3, 0), reportOf("loss", 2, 1))).toBe("5 1");
});

test("a run without a report is one failure", () => {
  const lost = { scenario: "data", report: join(directory, "none.json") };
  expect(count(reportOf("up", 3, 0), lost)).toBe("3 1");
});
