import { Line, type Place, type Waiting } from "./line.ts";
import type { SlotLease, SlotLeases } from "./slot-leases.ts";

/** A slot in use. */
export interface Slot {
  /** Ms that its call waited for it. */
  readonly queuedMs: number;
  /** Gives it to the next call; once. */
  release(): void;
}

/** Too many calls wait already. */
export class QueueFull extends Error {}

/** No slot became free in time. */
export class QueueTimeout extends Error {}

export interface WaitOptions {
  readonly queueLimit: number;
  readonly maxWaitMs: number;
  /** Leaves the line; its reason is thrown. */
  readonly signal: AbortSignal;
  /** Receives how many have a better place, asked at any time while it waits. */
  readonly onPlace?: (ahead: () => number) => void;
}

/** A call in line. */
interface Ticket {
  /** It has a slot, or has left. */
  over: boolean;
  grant(slot: Slot): void;
}

/** What a call is expected to take before one has ended. */
const FIRST_GUESS_MS = 10_000;
/** Weight of the latest call in the average. */
const LATEST = 0.2;
/** Slots that other gateways hold become free without notice. */
const ASK_AGAIN_MS = 250;

const NOT_SHARED: SlotLease = { release: () => undefined };

/** The slots of one model at one runner, and the calls that wait for them. */
export class SlotQueue {
  readonly #key: string;
  /** Shares the slots with other gateways; null: there are none. */
  readonly #leases: SlotLeases | null;
  readonly #line = new Line<Ticket>();
  /** Infinity: not limited. */
  #limit = Infinity;
  #used = 0;
  #averageMs = FIRST_GUESS_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(key: string, leases: SlotLeases | null) {
    this.#key = key;
    this.#leases = leases;
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#line.length;
  }

  /** Slots in use by this gateway. */
  get used(): number {
    return this.#used;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#serve();
  }

  get hasFree(): boolean {
    return this.#used < this.#limit && this.#line.length === 0;
  }

  /** Until a call that came now would have a slot, by how long calls have taken so far. */
  get expectedWaitMs(): number {
    return (this.#averageMs * (this.#line.length + 1)) / this.#limit;
  }

  /** A slot, if one is free and none waits; null: there is none. */
  async claim(): Promise<Slot | null> {
    if (!this.hasFree) {
      return null;
    }
    this.#used++;
    const lease = await this.#lease();
    if (lease === null) {
      this.#used--;
      // Calls that came meanwhile found the slot in use.
      this.#serve();
      return null;
    }
    return this.#slot(lease);
  }

  /** Waits in line for a slot. Throws {@link QueueFull}, {@link QueueTimeout}, or the signal's reason. */
  async wait(place: Place, options: WaitOptions): Promise<Slot> {
    const { queueLimit, maxWaitMs, signal, onPlace } = options;
    signal.throwIfAborted();
    if (this.#line.length >= queueLimit) {
      throw new QueueFull();
    }
    const since = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<Slot>();
    const ticket: Ticket = {
      over: false,
      grant(slot) {
        if (ticket.over) {
          slot.release();
          return;
        }
        ticket.over = true;
        const queuedMs = Math.round(performance.now() - since);
        resolve({ ...slot, queuedMs });
      },
    };
    const waiting = this.#line.add(ticket, place);
    const leave = (reason: unknown) => {
      if (!ticket.over) {
        ticket.over = true;
        this.#line.remove(waiting);
        reject(reason as Error);
      }
    };
    const onAbort = () => leave(signal.reason);
    const timer = setTimeout(() => leave(new QueueTimeout()), maxWaitMs);
    signal.addEventListener("abort", onAbort);
    onPlace?.(() => this.#line.ahead(waiting));
    this.#serve();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #serve(): void {
    while (this.#used < this.#limit) {
      const next = this.#line.next();
      if (next === null) {
        return;
      }
      this.#used++;
      if (this.#leases === null) {
        next.value.grant(this.#slot(NOT_SHARED));
      } else {
        void this.#serveShared(next);
        // One after the other: two at once would change places.
        return;
      }
    }
  }

  async #serveShared(next: Waiting<Ticket>): Promise<void> {
    const lease = await this.#lease();
    if (lease !== null) {
      next.value.grant(this.#slot(lease));
      this.#serve();
      return;
    }
    this.#used--;
    if (!next.value.over) {
      this.#line.putBack(next);
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#serve();
    }, ASK_AGAIN_MS);
  }

  /** null: other gateways hold all slots. */
  async #lease(): Promise<SlotLease | null> {
    return this.#leases === null || this.#limit === Infinity
      ? NOT_SHARED
      : this.#leases.take(this.#key, this.#limit);
  }

  #slot(lease: SlotLease): Slot {
    const since = performance.now();
    let released = false;
    return {
      queuedMs: 0,
      release: () => {
        if (released) {
          return;
        }
        released = true;
        this.#used--;
        this.#averageMs +=
          (performance.now() - since - this.#averageMs) * LATEST;
        lease.release();
        this.#serve();
      },
    };
  }
}
