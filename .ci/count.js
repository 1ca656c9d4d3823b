// Prints "<passed> <failed>" of a vitest JSON report. A skipped test, or a suite without tests, counts as failed.
import { readFileSync } from "node:fs";

const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
const left = report.numPendingTests + report.numTodoTests;
if (left > 0)
  console.error(`${left} tests were skipped; here that is a failure`);
const broken = report.testResults.filter(
  (suite) =>
    suite.status === "failed" &&
    suite.assertionResults.every(({ status }) => status !== "failed"),
);
for (const suite of broken)
  console.error(`${suite.name} failed as a whole: ${suite.message}`);
const empty = report.numTotalTests === 0 ? 1 : 0;
console.log(
  report.numPassedTests,
  report.numFailedTests + left + broken.length + empty,
);
