import { expect, test } from "vitest";
import { fine, wrong } from "../core/finding.ts";
import { describeFindings } from "./doctor.ts";

test("problems are first, and findings of one subject follow each other", () => {
  const text = describeFindings([
    fine("files", "secrets are present"),
    fine("postgres", "the data directory is complete"),
    fine("files", "30 files checked"),
    wrong("ports", "4000 is in use", "lsof -i :4000"),
  ]);
  expect(text.split("\n")).toEqual([
    "1 problem found on this machine.",
    "",
    "✕ ports     4000 is in use",
    "              lsof -i :4000",
    "● files     secrets are present",
    "● files     30 files checked",
    "● postgres  the data directory is complete",
  ]);
});
