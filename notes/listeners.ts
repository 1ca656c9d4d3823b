/** Functions that are called after every event. */
export class Listeners {
  readonly #all = new Set<() => void>();

  get size(): number {
    return this.#all.size;
  }

  /** Returns a function that stops the calls. */
  add(listener: () => void): () => void {
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  notify(): void {
    // A copy: listeners that remove themselves and add the next would be called without end.
    for (const listener of [...this.#all]) {
      listener();
    }
  }
}
