import { existsSync, readFileSync, writeFileSync } from "node:fs";

interface Report {
  readonly testResults: readonly unknown[];
}

/** Writes what several runs of vitest reported as one JSON report. A run that left none is a file that failed as a whole. */
export function mergeReports(
  runs: readonly { readonly scenario: string; readonly report: string }[],
  file: string,
): void {
  const testResults = runs.flatMap(({ scenario, report }) =>
    existsSync(report)
      ? (JSON.parse(readFileSync(report, "utf8")) as Report).testResults
      : {
          name: scenario,
          status: "failed",
          message: "it left no report",
          assertionResults: [],
        },
  );
  writeFileSync(file, JSON.stringify({ testResults }));
}
