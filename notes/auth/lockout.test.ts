import { expect, test } from "vitest";
import { openLockout } from "./lockout.ts";

test("five failures lock one user at one address for five minutes", () => {
  let now = 0;
  const lockout = openLockout(() => now);
  const fail = (): boolean => lockout.failed("10.0.0.1", "ann", "salt");
  expect([fail(), fail(), fail(), fail()]).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(lockout.isLocked("10.0.0.1", "ann", "salt")).toBe(false);
  expect(fail()).toBe(true);
  expect(lockout.isLocked("10.0.0.1", "ann", "salt")).toBe(true);
  expect(lockout.isLocked("10.0.0.2", "ann", "salt")).toBe(false);
  expect(lockout.isLocked("10.0.0.1", "bob", "salt")).toBe(false);
  now += 5 * 60_000 - 1;
  expect(lockout.isLocked("10.0.0.1", "ann", "salt")).toBe(true);
  now += 1;
  expect(lockout.isLocked("10.0.0.1", "ann", "salt")).toBe(false);
});

test("a password that is saved anew has another salt, which unlocks", () => {
  const lockout = openLockout(() => 0);
  for (let count = 0; count < 5; count += 1) lockout.failed("a", "ann", "old");
  expect(lockout.isLocked("a", "ann", "old")).toBe(true);
  expect(lockout.isLocked("a", "ann", "new")).toBe(false);
});
