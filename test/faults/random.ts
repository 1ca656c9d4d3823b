/** Numbers that look random and are the same for the same seed (mulberry32). */
export interface Random {
  /** 0 ≤ x < 1. */
  next(): number;
  /** A whole number from least to most, both included. */
  whole(least: number, most: number): number;
  pick<T>(from: readonly T[]): T;
  chance(of: number): boolean;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const whole = (least: number, most: number) =>
    least + Math.floor(next() * (most - least + 1));
  return {
    next,
    whole,
    pick<T>(from: readonly T[]): T {
      if (from.length === 0) {
        throw new Error("nothing to pick from");
      }
      return from[whole(0, from.length - 1)] as T;
    },
    chance: (of) => next() < of,
  };
}
