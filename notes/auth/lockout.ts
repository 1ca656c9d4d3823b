import { MINUTE_MS } from "../../core/duration.ts";

/** Wrong passwords answered with 401; further attempts get 403. */
const MAX_FAILURES = 5;
const LOCKED_MS = 5 * MINUTE_MS;
const MAX_ENTRIES = 10_000;

/** Attempts with the same key count together. The salt is part of it, so that saving the same password again unlocks. */
export interface Attempt {
  readonly address: string;
  readonly user: string;
  readonly salt: string;
}

/** Counts wrong passwords by address and user. */
interface Lockout {
  readonly isLocked: (attempt: Attempt) => boolean;
  /** Counts a password that is about to be checked; false, and not counted, above the limit. */
  readonly start: (attempt: Attempt) => boolean;
  /** Records that the password counted by `start` was checked. */
  readonly end: (attempt: Attempt) => void;
  /** Counts a wrong password; returns how many there were. */
  readonly failed: (attempt: Attempt) => number;
}

export const locks = (failures: number): boolean => failures === MAX_FAILURES;
export const isBeyond = (failures: number): boolean => failures > MAX_FAILURES;

/** `now` in milliseconds. */
export function openLockout(now: () => number = Date.now): Lockout {
  const failures = new Map<string, { count: number; at: number }>();
  const checking = new Map<string, number>();
  const failuresOf = (name: string): number => {
    const entry = failures.get(name);
    // abs: after the clock was set back by an hour, a user would be locked out for an hour.
    if (entry === undefined || Math.abs(now() - entry.at) < LOCKED_MS) {
      return entry?.count ?? 0;
    }
    failures.delete(name);
    return 0;
  };
  const nameOf = ({ address, user, salt }: Attempt): string =>
    JSON.stringify([address, user, salt]);
  return {
    isLocked: (attempt) => failuresOf(nameOf(attempt)) >= MAX_FAILURES,
    start: (attempt) => {
      const name = nameOf(attempt);
      const under = checking.get(name) ?? 0;
      if (failuresOf(name) + under >= MAX_FAILURES) {
        return false;
      }
      checking.set(name, under + 1);
      return true;
    },
    end: (attempt) => {
      const name = nameOf(attempt);
      const left = (checking.get(name) ?? 1) - 1;
      if (left === 0) {
        checking.delete(name);
      } else {
        checking.set(name, left);
      }
    },
    failed: (attempt) => {
      const name = nameOf(attempt);
      const count = failuresOf(name) + 1;
      failures.delete(name);
      if (failures.size >= MAX_ENTRIES) {
        // Evict the oldest entry.
        failures.delete(failures.keys().next().value!);
      }
      failures.set(name, { count, at: now() });
      return count;
    },
  };
}
