import type { LimitCounts } from "./limits.ts";

/** Counts outages of Redis, and whether there is one now. */
export class OutageCounts {
  /** Leases reaped in this process; they count only while Redis is away, since Redis reaps them itself otherwise. */
  readonly #reapedHere: () => number;
  #reapedBefore = 0;
  #away = false;
  readonly #counts = {
    outages: 0,
    arrivals: 0,
    expiredLeases: 0,
    servedAway: 0,
    rejectedAway: 0,
  };

  constructor(reapedHere: () => number) {
    this.#reapedHere = reapedHere;
  }

  get away(): boolean {
    return this.#away;
  }

  started(): void {
    this.#away = true;
    this.#reapedBefore = this.#reapedHere();
    this.#counts.outages++;
  }

  ended(): void {
    this.#away = false;
    this.#counts.expiredLeases += this.#reapedHere() - this.#reapedBefore;
  }

  arrived(): void {
    this.#counts.arrivals++;
  }

  reaped(leases: number): void {
    this.#counts.expiredLeases += leases;
  }

  served(): void {
    this.#counts.servedAway++;
  }

  refused(): void {
    this.#counts.rejectedAway++;
  }

  sums(): Omit<LimitCounts, "instances"> {
    const reapedNow = this.#away ? this.#reapedHere() - this.#reapedBefore : 0;
    return {
      ...this.#counts,
      expiredLeases: this.#counts.expiredLeases + reapedNow,
    };
  }
}
