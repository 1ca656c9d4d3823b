/** Few enough to look at all of them. */
const PARTS = 8;

/**
 * Ids of calls that were added within the last `keepMs`, or up to a quarter longer. They are dropped by the part: to remove the oldest
 * from a map one by one, each removal searches all places that earlier ones left empty.
 */
export class RecentCalls {
  readonly #partMs: number;
  readonly #keepMs: number;
  #parts: { readonly since: number; readonly ids: Set<string> }[] = [];

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
    this.#partMs = keepMs / PARTS;
  }

  /** `at`: now, in ms. */
  add(callId: string, at: number): void {
    let newest = this.#parts.at(-1);
    if (newest === undefined || at - newest.since >= this.#partMs) {
      const keptSince = at - this.#keepMs - this.#partMs;
      this.#parts = this.#parts.filter(({ since }) => since > keptSince);
      newest = { since: at, ids: new Set() };
      this.#parts.push(newest);
    }
    newest.ids.add(callId);
  }

  /** Adds all of `older`, whose calls were added before those here, as of their time. */
  putBefore(older: RecentCalls): void {
    this.#parts = [...older.#parts, ...this.#parts];
  }

  *ids(): Iterable<string> {
    for (const { ids } of this.#parts) {
      yield* ids;
    }
  }
}
