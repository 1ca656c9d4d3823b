// Counts vitest's JSON reports; a file in a later report replaces its earlier run. Prints "<passed> <failed>", then one line per
// failed file; with --names only the failed tests. A skipped test, or a file without tests, counts as failed.
import { readFileSync } from "node:fs";

const files = new Map();
const [namesOnly, ...rest] =
  process.argv[2] === "--names"
    ? [true, ...process.argv.slice(3)]
    : [false, ...process.argv.slice(2)];
for (const path of rest) {
  for (const file of JSON.parse(readFileSync(path, "utf8")).testResults) {
    files.set(file.name, file);
  }
}

let passed = 0;
let failed = files.size === 0 ? 1 : 0;
const failedFiles = [];
for (const { name, status, message, assertionResults } of files.values()) {
  const ofStatus = (wanted) =>
    assertionResults.filter((test) => test.status === wanted).length;
  const failures = ofStatus("failed");
  const left = assertionResults.length - ofStatus("passed") - failures;
  const asAWhole =
    failures === 0 && (status === "failed" || assertionResults.length === 0);
  if (left > 0) {
    console.error(
      `${name}: ${left} tests were skipped; here that is a failure`,
    );
  }
  if (asAWhole) {
    console.error(`${name} failed as a whole: ${message}`);
  }
  passed += ofStatus("passed");
  failed += failures + left + (asAWhole ? 1 : 0);
  if (failures + left > 0 || asAWhole) {
    failedFiles.push(name);
  }
}
if (namesOnly) {
  for (const { name, message, assertionResults } of files.values()) {
    const failures = assertionResults.filter(
      (test) => test.status !== "passed",
    );
    for (const { fullName, status, failureMessages } of failures) {
      console.log(`${name}: ${fullName}: ${failureMessages[0] ?? status}`);
    }
    if (assertionResults.length === 0) {
      console.log(`${name}: ${message}`);
    }
  }
} else {
  console.log([`${passed} ${failed}`, ...failedFiles].join("\n"));
}
