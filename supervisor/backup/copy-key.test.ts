import { statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createHome } from "../home/home.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { awaitKeyShown } from "./copy-jobs.ts";
import {
  findCopyKey,
  keyId,
  makeAndKeepCopyKey,
  markShown,
} from "./copy-key.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
  createHome(place.home);
});
afterEach(() => place.remove());

test("a key is readable only by its owner, and records whether it was shown", () => {
  expect(findCopyKey(place.home, {})).toBeUndefined();
  const made = makeAndKeepCopyKey(place.home, 1000);
  expect(findCopyKey(place.home, {})).toEqual({ ...made, shownAt: null });
  const file = join(place.home.root, "backup-copy-key.json");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  markShown(place.home, made, 2000);
  expect(findCopyKey(place.home, {})?.shownAt).toBe(2000);
});

test("a key set by the operator takes precedence, and an invalid one is rejected", () => {
  const { key } = makeAndKeepCopyKey(place.home, 1000);
  const other = makeAndKeepCopyKey(place.home, 2000).key;
  expect(keyId(key)).not.toBe(keyId(other));
  expect(findCopyKey(place.home, { BACKUP_COPY_KEY: key })).toMatchObject({
    key,
    shownAt: 0,
  });
  expect(() => findCopyKey(place.home, { BACKUP_COPY_KEY: "secret" })).toThrow(
    "invalid key of copies: it must have 43 letters",
  );
});

test("the alarm about a key that was not shown yet ends soon after it was shown", () => {
  vi.useFakeTimers();
  const cleared: string[] = [];
  const end = awaitKeyShown({
    home: place.home,
    env: {},
    alarms: {
      ...alarmsIn(new Map()),
      clear: (fingerprint) => void cleared.push(fingerprint),
    },
  });
  try {
    const key = makeAndKeepCopyKey(place.home, 1000);
    vi.advanceTimersByTime(60_000);
    expect(cleared).toEqual([]);
    markShown(place.home, key, 2000);
    vi.advanceTimersByTime(30_000);
    expect(cleared).toEqual(["backup-copy-key"]);
  } finally {
    end();
    vi.useRealTimers();
  }
});
