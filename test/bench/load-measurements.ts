import { latencyOf, type Latency } from "./latencies.ts";
import type { Answer } from "./load-connection.ts";
import type { Period, Schedule } from "./load-schedule.ts";

export interface LoadResult {
  /** Calls in the measured time, and its length. */
  readonly calls: number;
  readonly seconds: number;
  readonly latency: Latency | null;
  /** The same, from the moment that each call was sent: without the generator's own delay. */
  readonly sinceSent: Latency | null;
  /** How late calls were sent: the generator's own delay in an open loop. */
  readonly late: Latency | null;
  /** An open loop sent (nearly) all calls in its time, and its target kept up; always true of other loads. */
  readonly kept: boolean;
  /** The run ended early because its target did not keep up. */
  readonly gaveUp: boolean;
  /** Time to the first byte of the body. */
  readonly firstByte: Latency | null;
  readonly cacheHits: number;
  readonly hitLatency: Latency | null;
  /** All calls answered with 200, including those before and after the measured time. */
  readonly answered: number;
  readonly answeredFromCache: number;
  readonly errors: number;
  readonly firstError: string | null;
}

/** Of the calls of an open loop, those which its generator may send after the end of its time. */
const MAX_UNSENT_SHARE = 0.01;

/** The outcomes of all calls of a run, and the latencies of the measured ones. */
export class Measurements {
  readonly #schedule: Schedule;
  readonly #period: Period;
  readonly #latencies: number[] = [];
  readonly #sinceSent: number[] = [];
  readonly #late: number[] = [];
  readonly #firstBytes: number[] = [];
  readonly #hits: number[] = [];
  #answered = 0;
  #answeredFromCache = 0;
  #errors = 0;
  #firstError: string | null = null;
  #lastEnd: number;
  #lastMeasured: number;
  #unsent = 0;
  #gaveUp = false;

  constructor(schedule: Schedule, period: Period) {
    this.#schedule = schedule;
    this.#period = period;
    this.#lastEnd = period.startedAt;
    this.#lastMeasured = period.measureFrom;
  }

  /** A closed loop needs an answer for each connection: a slow target would have none, or few by chance, in a short time. */
  get isTooFew(): boolean {
    return (
      this.#schedule.kind === "closed" &&
      this.#latencies.length < this.#schedule.concurrency
    );
  }

  get mostlyFailed(): boolean {
    return this.#errors > 100 && this.#errors > this.#answered;
  }

  get gaveUp(): boolean {
    return this.#gaveUp;
  }

  add(answer: Answer): void {
    const { since, sentAt, endedAt, firstByteAt, cacheHit } = answer;
    this.#lastEnd = endedAt;
    if (answer.status !== 200) {
      return this.addError(`${answer.status} ${answer.text.slice(0, 300)}`);
    }
    this.#answered++;
    if (cacheHit) {
      this.#answeredFromCache++;
    }
    if (!this.#isMeasured(answer)) {
      return;
    }
    this.#lastMeasured = endedAt;
    this.#latencies.push(endedAt - since);
    this.#sinceSent.push(endedAt - sentAt);
    this.#late.push(sentAt - since);
    if (sentAt >= this.#period.measureUntil) {
      this.#unsent++;
    }
    this.#firstBytes.push(firstByteAt - since);
    if (cacheHit) {
      this.#hits.push(endedAt - since);
    }
  }

  giveUp(): void {
    this.#gaveUp = true;
  }

  addError(reason: string): void {
    this.#errors++;
    this.#firstError ??= reason;
  }

  result(): LoadResult {
    return {
      calls: this.#latencies.length,
      seconds: this.#measuredMs() / 1_000,
      latency: latencyOf(this.#latencies),
      sinceSent: latencyOf(this.#sinceSent),
      late: this.#schedule.kind === "open" ? latencyOf(this.#late) : null,
      kept: this.#schedule.kind !== "open" || this.#keptRate(),
      gaveUp: this.#gaveUp,
      firstByte: latencyOf(this.#firstBytes),
      cacheHits: this.#hits.length,
      hitLatency: latencyOf(this.#hits),
      answered: this.#answered,
      answeredFromCache: this.#answeredFromCache,
      errors: this.#errors,
      firstError: this.#firstError,
    };
  }

  #keptRate(): boolean {
    const allowed = Math.max(1, this.#latencies.length * MAX_UNSENT_SHARE);
    return !this.#gaveUp && this.#unsent <= allowed;
  }

  #isMeasured({ since, endedAt }: Answer): boolean {
    const { measureFrom, measureUntil } = this.#period;
    return this.#schedule.kind === "open"
      ? since >= measureFrom && since < measureUntil
      : endedAt >= measureFrom && (endedAt < measureUntil || this.isTooFew);
  }

  #measuredMs(): number {
    switch (this.#schedule.kind) {
      case "count":
        return this.#lastEnd - this.#period.startedAt;
      case "closed":
        return Math.max(
          this.#schedule.durationMs,
          this.#lastMeasured - this.#period.measureFrom,
        );
      case "open":
        return this.#schedule.durationMs;
    }
  }
}
