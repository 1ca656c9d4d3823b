import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeOutput } from "./write-output.ts";

test("a file that cannot be written is named with what helps, which is not another home", () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-output-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "report.csv");
  writeOutput(file, "a,b\n");
  expect(readFileSync(file, "utf8")).toBe("a,b\n");
  const within = join(directory, "missing", "report.csv");
  expect(() => writeOutput(within, "")).toThrow(
    `cannot write ${within} (ENOENT): name a file in a directory that exists and is writable.`,
  );
});
