import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { removeReports } from "./retention.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("expired reports are removed; directories and newer reports are kept", () => {
  const directory = join(place.directory, "reports");
  expect(removeReports(directory, Date.now())).toBe(0);
  mkdirSync(join(directory, "unrelated"), { recursive: true });
  const written = new Date("2025-01-01T00:00:00Z");
  for (const name of ["old.html", "old.csv", "young.html"]) {
    writeFileSync(join(directory, name), "report");
    if (name.startsWith("old")) {
      utimesSync(join(directory, name), written, written);
    }
  }
  expect(removeReports(directory, Date.parse("2026-01-01"))).toBe(2);
  expect(existsSync(join(directory, "young.html"))).toBe(true);
  expect(existsSync(join(directory, "unrelated"))).toBe(true);
});
