import { expect, test } from "vitest";
import { changesOf, checkSameGeneration, describeChanges } from "./changes.ts";
import type { Release } from "./release.ts";

const release = (version: string, change: Partial<Release> = {}): Release => ({
  id: `${version}-0123456789`,
  version,
  commit: null,
  checkout: "/src/hearth",
  madeAt: "2026-11-22T00:00:00.000Z",
  schemaGeneration: 1,
  migrations: ["0001_payers"],
  postgres: "18.4.0-beta.17",
  ...change,
});

test("an upgrade lists the versions and the migrations", () => {
  const to = release("1.1.0", { migrations: ["0001_payers", "0002_ledger"] });
  const words = describeChanges(changesOf(release("1.0.0"), to)).join("\n");
  expect(words).toContain("1.0.0 (0123456789)");
  expect(words).toContain("1 migrations: 0002_ledger");
  expect(words).not.toContain("Postgres");
});

test("a downgrade works only within one schema generation, and the message names both versions", () => {
  const older = release("1.0.0");
  const newer = release("2.0.0", { schemaGeneration: 2 });
  expect(() => checkSameGeneration(older, newer)).not.toThrow();
  expect(() => checkSameGeneration(newer, older)).toThrow(
    /release 1\.0\.0 .* release 2\.0\.0 .*generation 1 instead of 2/,
  );
});

test("an upgrade to another major version of Postgres explains what happens to the data", () => {
  const older = release("1.0.0", { postgres: "17.6.0" });
  const words = (to: Release) => describeChanges(changesOf(older, to)).join();
  expect(words(release("1.0.1"))).toMatch(
    /new cluster of Postgres 18, and the one of Postgres 17 is kept/,
  );
  expect(words(release("1.0.1", { postgres: "17.7.0" }))).not.toContain(
    "cluster",
  );
});
