import { existsSync, readFileSync, writeFileSync } from "node:fs";

interface Report {
  readonly testResults: readonly unknown[];
}

/** Merges the JSON reports of several vitest runs. A run without a report counts as one failed file. */
export function mergeReports(
  runs: readonly {
    readonly group: readonly string[];
    readonly report: string;
  }[],
  file: string,
): void {
  const testResults = runs.flatMap(({ group, report }) =>
    existsSync(report)
      ? (JSON.parse(readFileSync(report, "utf8")) as Report).testResults
      : {
          name: group.join(", "),
          status: "failed",
          message: "it left no report",
          assertionResults: [],
        },
  );
  writeFileSync(file, JSON.stringify({ testResults }));
}
