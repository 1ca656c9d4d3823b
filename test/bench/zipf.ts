/** Pseudorandom numbers from 0 to below 1, the same sequence for the same seed (mulberry32 over an FNV-1a hash). */
export function randomSequence(seed: string): () => number {
  let state = 0x81_1c_9d_c5;
  for (const character of seed) {
    state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01_00_01_93);
  }
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `length` random items of 0 … `items` − 1; the n-th item has a weight of 1/n (Zipf with exponent 1). */
export function zipfSequence(
  length: number,
  items: number,
  random: () => number,
): readonly number[] {
  const sums: number[] = [];
  let sum = 0;
  for (let item = 1; item <= items; item++) {
    sums.push((sum += 1 / item));
  }
  return Array.from({ length }, () => {
    const point = random() * sum;
    return sums.findIndex((upTo) => point < upTo);
  });
}
