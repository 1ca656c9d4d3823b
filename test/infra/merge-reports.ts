import { existsSync, readFileSync, writeFileSync } from "node:fs";

const COUNTS = [
  "numTotalTests",
  "numPassedTests",
  "numFailedTests",
  "numPendingTests",
  "numTodoTests",
] as const;

type Report = Readonly<Record<(typeof COUNTS)[number], number>> & {
  readonly testResults: readonly unknown[];
};

/** Writes what several runs of vitest reported as one JSON report. A run that left none is a file that failed as a whole. */
export function mergeReports(
  runs: readonly { readonly scenario: string; readonly report: string }[],
  file: string,
): void {
  const reports = runs.map(({ scenario, report }) =>
    existsSync(report)
      ? (JSON.parse(readFileSync(report, "utf8")) as Report)
      : failedAsAWhole(scenario),
  );
  const merged: Record<string, unknown> = {
    testResults: reports.flatMap(({ testResults }) => testResults),
  };
  for (const count of COUNTS)
    merged[count] = reports.reduce((sum, report) => sum + report[count], 0);
  writeFileSync(file, JSON.stringify(merged));
}

function failedAsAWhole(scenario: string): Report {
  return {
    ...{ numTotalTests: 0, numPassedTests: 0, numFailedTests: 0 },
    ...{ numPendingTests: 0, numTodoTests: 0 },
    testResults: [
      {
        name: scenario,
        status: "failed",
        message: "it left no report",
        assertionResults: [],
      },
    ],
  };
}
