import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { beginBackup } from "./backup-files.ts";

let place: ReturnType<typeof temporaryHome>;
let parent: string;

beforeEach(() => {
  place = temporaryHome();
  parent = join(place.directory, "notes");
});
afterEach(() => place.remove());

test("the remains of a killed run are removed; an incomplete backup of this process is not", () => {
  mkdirSync(join(parent, ".making-2026-11-19T030000Z"), { recursive: true });
  const fetched = beginBackup(parent, "2026-11-20T030000Z");
  const taken = beginBackup(parent, "2026-11-21T030000Z");
  expect(existsSync(fetched.directory)).toBe(true);
  taken.finish();
  fetched.finish();
  expect(readdirSync(parent).toSorted()).toEqual([
    "2026-11-20T030000Z",
    "2026-11-21T030000Z",
  ]);
});

test("an abandoned backup leaves no files and can be started again", () => {
  beginBackup(parent, "2026-11-20T030000Z").abandon();
  expect(readdirSync(parent)).toEqual([]);
  beginBackup(parent, "2026-11-20T030000Z").finish();
  expect(readdirSync(parent)).toEqual(["2026-11-20T030000Z"]);
});
