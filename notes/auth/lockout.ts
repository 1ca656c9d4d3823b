/** Wrong passwords that get 401; every further attempt gets 403. */
const MAX_FAILURES = 5;
const LOCKED_MS = 5 * 60_000;
const MAX_ENTRIES = 10_000;

/** Counts wrong passwords for an address and a user. The salt is part of it, so that saving a password anew unlocks. */
export interface Lockout {
  readonly isLocked: (address: string, user: string, salt: string) => boolean;
  /** Returns true for the failure that locks. */
  readonly failed: (address: string, user: string, salt: string) => boolean;
}

/** `now` in milliseconds. */
export function openLockout(now: () => number = Date.now): Lockout {
  const failures = new Map<string, { count: number; at: number }>();
  const current = (name: string): { count: number; at: number } | undefined => {
    const entry = failures.get(name);
    if (entry === undefined || now() - entry.at < LOCKED_MS) return entry;
    failures.delete(name);
    return undefined;
  };
  const nameOf = (...parts: string[]): string => JSON.stringify(parts);
  return {
    isLocked: (address, user, salt) =>
      (current(nameOf(address, user, salt))?.count ?? 0) >= MAX_FAILURES,
    failed: (address, user, salt) => {
      const name = nameOf(address, user, salt);
      const count = (current(name)?.count ?? 0) + 1;
      failures.delete(name);
      if (failures.size >= MAX_ENTRIES) {
        // The oldest entry makes room.
        failures.delete(failures.keys().next().value!);
      }
      failures.set(name, { count, at: now() });
      return count === MAX_FAILURES;
    },
  };
}
