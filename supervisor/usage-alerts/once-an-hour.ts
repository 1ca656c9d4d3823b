import { HOUR_MS } from "../../core/duration.ts";

/** What is expensive to read from the ledger, kept until the next full hour. */
export class OnceAnHour<T> {
  readonly #known = new Map<string, T>();
  #hour = 0;

  /** `now` in milliseconds since 1970. */
  async get(key: string, now: number, read: () => Promise<T>): Promise<T> {
    const hour = Math.floor(now / HOUR_MS);
    if (hour !== this.#hour) {
      this.#known.clear();
      this.#hour = hour;
    }
    const known = this.#known.get(key);
    if (known !== undefined) {
      return known;
    }
    const value = await read();
    this.#known.set(key, value);
    return value;
  }
}
