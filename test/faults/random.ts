/** Pseudorandom numbers, the same for the same seed (mulberry32). */
export interface Random {
  /** 0 ≤ x < 1. */
  next(): number;
  /** An integer from min to max, both inclusive. */
  integer(min: number, max: number): number;
  pick<T>(from: readonly T[]): T;
  /** True with this probability. */
  chance(probability: number): boolean;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const integer = (min: number, max: number) =>
    min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    pick<T>(from: readonly T[]): T {
      if (from.length === 0) {
        throw new Error("nothing to pick from");
      }
      return from[integer(0, from.length - 1)] as T;
    },
    chance: (probability) => next() < probability,
  };
}
