/** Where a call stands in a line: those of batch keys after all others, within each by the order that the call asks for. */
export interface Place {
  readonly batch: boolean;
  /** The lowest first. */
  readonly order: number;
}

/** One that waits. */
export interface Waiting<T> extends Place {
  readonly value: T;
  readonly arrival: number;
}

/** Every so many turns the longest waiting is next, whatever its place: none waits forever. */
export const OLDEST_EVERY = 4;

/** A line with priorities: first in, first out among equals. */
export class Line<T> {
  /** The longest waiting first. */
  readonly #waiting: Waiting<T>[] = [];
  #arrivals = 0;
  #turns = 0;

  get length(): number {
    return this.#waiting.length;
  }

  add(value: T, { batch, order }: Place): Waiting<T> {
    const waiting = { value, batch, order, arrival: this.#arrivals++ };
    this.#waiting.push(waiting);
    return waiting;
  }

  /** Takes one out of the line, if it still waits. */
  remove(waiting: Waiting<T>): void {
    const at = this.#waiting.indexOf(waiting);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
    }
  }

  /** The next, which leaves the line; null: none waits. */
  next(): Waiting<T> | null {
    const first = this.#first();
    if (first !== null) {
      this.#turns++;
      this.remove(first);
    }
    return first;
  }

  /** Returns the one that was next, but could not be served, to where it stood. */
  putBack(waiting: Waiting<T>): void {
    this.#turns--;
    const at = this.#waiting.findIndex(
      ({ arrival }) => arrival > waiting.arrival,
    );
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, waiting);
  }

  /** How many have a better place. */
  ahead(waiting: Waiting<T>): number {
    return this.#waiting.filter((other) => isBefore(other, waiting)).length;
  }

  #first(): Waiting<T> | null {
    const [oldest = null] = this.#waiting;
    if (oldest === null || this.#turns % OLDEST_EVERY === OLDEST_EVERY - 1) {
      return oldest;
    }
    return this.#waiting.reduce((best, one) =>
      isBefore(one, best) ? one : best,
    );
  }
}

function isBefore<T>(one: Waiting<T>, other: Waiting<T>): boolean {
  if (one.batch !== other.batch) {
    return other.batch;
  }
  return one.order === other.order
    ? one.arrival < other.arrival
    : one.order < other.order;
}
