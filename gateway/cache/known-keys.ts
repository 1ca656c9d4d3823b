const SLOTS = 65_536;

/**
 * The keys that were seen lately, in 256 KiB. An older one is forgotten for a newer one in its slot; with one in four billion a
 * key is taken for another. Keys end in a hash.
 */
export class KnownKeys {
  readonly #tags = new Uint32Array(SLOTS);

  has(key: string): boolean {
    return this.#tags[slotOf(key)] === tagOf(key);
  }

  add(key: string): void {
    this.#tags[slotOf(key)] = tagOf(key);
  }
}

function slotOf(key: string): number {
  return Number.parseInt(key.slice(-12, -8), 16);
}

function tagOf(key: string): number {
  return Number.parseInt(key.slice(-8), 16);
}
