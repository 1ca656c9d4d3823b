import { expect, test } from "vitest";
import { isBeyond, locks, openLockout, type Attempt } from "./lockout.ts";

const ann: Attempt = { address: "10.0.0.1", user: "ann", salt: "salt" };

test("five failures lock out a user at an address for five minutes", () => {
  let now = 0;
  const lockout = openLockout(() => now);
  const fail = (): boolean => locks(lockout.failed(ann));
  expect([fail(), fail(), fail(), fail()]).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(lockout.isLocked(ann)).toBe(false);
  expect(fail()).toBe(true);
  expect(lockout.isLocked(ann)).toBe(true);
  expect(lockout.isLocked({ ...ann, address: "10.0.0.2" })).toBe(false);
  expect(lockout.isLocked({ ...ann, user: "bob" })).toBe(false);
  now += 5 * 60_000 - 1;
  expect(lockout.isLocked(ann)).toBe(true);
  now += 1;
  expect(lockout.isLocked(ann)).toBe(false);
});

test("saving a password again changes the salt, which unlocks", () => {
  const lockout = openLockout(() => 0);
  for (let count = 0; count < 5; count += 1) {
    lockout.failed(ann);
  }
  expect(lockout.isLocked(ann)).toBe(true);
  expect(lockout.isLocked({ ...ann, salt: "new" })).toBe(false);
});

test("passwords count as wrong while they are being checked", () => {
  const lockout = openLockout(() => 0);
  lockout.failed(ann);
  const started = Array.from({ length: 6 }, () => lockout.start(ann));
  expect(started).toEqual([true, true, true, true, false, false]);
  lockout.end(ann);
  expect(lockout.start(ann)).toBe(true);
  expect(isBeyond(5)).toBe(false);
  expect(isBeyond(6)).toBe(true);
});

test("passwords no longer count once they were checked", () => {
  const lockout = openLockout(() => 0);
  for (let count = 0; count < 4; count += 1) {
    lockout.failed(ann);
  }
  for (let count = 0; count < 3; count += 1) {
    expect(lockout.start(ann)).toBe(true);
    lockout.end(ann);
  }
});

test("a clock that is set back by an hour does not lock out for an hour", () => {
  let now = 7_200_000;
  const lockout = openLockout(() => now);
  for (let count = 0; count < 5; count += 1) {
    lockout.failed(ann);
  }
  expect(lockout.isLocked(ann)).toBe(true);
  now -= 3_600_000;
  expect(lockout.isLocked(ann)).toBe(false);
});
