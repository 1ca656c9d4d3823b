// The load generator in its own process.
import { connect, type Answer, type Connection } from "./load-connection.ts";
import {
  createRequests,
  type NextRequest,
  type RequestOptions,
} from "./load-requests.ts";
import { latencyOf, type Latency } from "./latencies.ts";
import { answerParent } from "./programs.ts";

/** The schedule of calls. */
export type Schedule =
  /** Each of `concurrency` connections sends its next call after the response to the last one. */
  | {
      readonly kind: "closed";
      readonly concurrency: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    }
  /** A closed loop of a fixed number of calls, without a warm-up. */
  | {
      readonly kind: "count";
      readonly concurrency: number;
      readonly calls: number;
    }
  /** `rate` calls per second, sent when they are due regardless of pending responses; latency is measured from the due time. */
  | {
      readonly kind: "open";
      readonly rate: number;
      /** Opened first and used in turn; without it one is opened when no other is free. */
      readonly connections?: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    };

export interface LoadRun extends RequestOptions {
  readonly schedule: Schedule;
}

export interface LoadResult {
  /** Calls in the measured time, and its length. */
  readonly calls: number;
  readonly seconds: number;
  readonly latency: Latency | null;
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

/** Limit of calls in flight; further ones wait, which counts as latency. */
const MAX_CONNECTIONS = 1_000;

/** When a run starts and which part of it is measured, in ms of `performance.now()`. */
interface Period {
  readonly startedAt: number;
  readonly measureFrom: number;
  readonly measureUntil: number;
}

function startPeriod(schedule: Schedule): Period {
  const startedAt = performance.now();
  if (schedule.kind === "count") {
    return { startedAt, measureFrom: startedAt, measureUntil: Infinity };
  }
  const measureFrom = startedAt + schedule.warmupMs;
  const measureUntil = measureFrom + schedule.durationMs;
  return { startedAt, measureFrom, measureUntil };
}

/** The outcomes of all calls of a run, and the latencies of the measured ones. */
class Measurements {
  readonly #schedule: Schedule;
  readonly #period: Period;
  readonly #latencies: number[] = [];
  readonly #firstBytes: number[] = [];
  readonly #hits: number[] = [];
  #answered = 0;
  #answeredFromCache = 0;
  #errors = 0;
  #firstError: string | null = null;
  #lastEnd: number;
  #lastMeasured: number;

  constructor(schedule: Schedule, period: Period) {
    this.#schedule = schedule;
    this.#period = period;
    this.#lastEnd = period.startedAt;
    this.#lastMeasured = period.measureFrom;
  }

  get isEmpty(): boolean {
    return this.#latencies.length === 0;
  }

  get mostlyFailed(): boolean {
    return this.#errors > 100 && this.#errors > this.#answered;
  }

  add(answer: Answer): void {
    const { since, endedAt, firstByteAt, cacheHit } = answer;
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
    this.#firstBytes.push(firstByteAt - since);
    if (cacheHit) {
      this.#hits.push(endedAt - since);
    }
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
      firstByte: latencyOf(this.#firstBytes),
      cacheHits: this.#hits.length,
      hitLatency: latencyOf(this.#hits),
      answered: this.#answered,
      answeredFromCache: this.#answeredFromCache,
      errors: this.#errors,
      firstError: this.#firstError,
    };
  }

  #isMeasured({ since, endedAt }: Answer): boolean {
    const { measureFrom, measureUntil } = this.#period;
    return this.#schedule.kind === "open"
      ? since >= measureFrom && since < measureUntil
      : endedAt >= measureFrom && (endedAt < measureUntil || this.isEmpty);
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

/** Sends the calls of one run by its schedule. */
class LoadGenerator {
  readonly #port: number;
  readonly #schedule: Schedule;
  readonly #nextRequest: NextRequest;
  readonly #period: Period;
  readonly #measurements: Measurements;
  readonly #free: Connection[] = [];
  readonly #all = new Set<Connection>();
  readonly #done = Promise.withResolvers<void>();
  #inFlight = 0;
  #sent = 0;

  constructor(order: LoadRun) {
    this.#port = order.port;
    this.#schedule = order.schedule;
    this.#nextRequest = createRequests(order);
    this.#period = startPeriod(order.schedule);
    this.#measurements = new Measurements(order.schedule, this.#period);
  }

  async run(): Promise<LoadResult> {
    const ticking = setInterval(() => this.#pump(), 1);
    this.#pump();
    await this.#done.promise;
    clearInterval(ticking);
    for (const connection of this.#all) {
      connection.close();
    }
    return this.#measurements.result();
  }

  /** Sends all calls that are due, and ends the run after the last one. */
  #pump(): void {
    if (this.#schedule.kind === "open") {
      while (
        this.#dueAt(this.#schedule.rate) <= performance.now() &&
        this.#inFlight < MAX_CONNECTIONS &&
        this.#mayContinue()
      ) {
        this.#send(this.#dueAt(this.#schedule.rate));
      }
    } else {
      while (
        this.#inFlight < this.#schedule.concurrency &&
        this.#mayContinue()
      ) {
        this.#send(performance.now());
      }
    }
    if (this.#inFlight === 0 && !this.#mayContinue()) {
      this.#done.resolve();
    }
  }

  #mayContinue(): boolean {
    // A target that fails every call ends the run early.
    if (this.#measurements.mostlyFailed) {
      return false;
    }
    switch (this.#schedule.kind) {
      case "count":
        return this.#sent < this.#schedule.calls;
      case "closed":
        // A closed loop waits for its first response even on a busy machine, since a rate needs at least one.
        return (
          performance.now() < this.#period.measureUntil ||
          this.#measurements.isEmpty
        );
      case "open":
        return this.#dueAt(this.#schedule.rate) < this.#period.measureUntil;
    }
  }

  /** When the next call of an open loop is due. */
  #dueAt(rate: number): number {
    return this.#period.startedAt + (this.#sent * 1_000) / rate;
  }

  #send(since: number): void {
    this.#inFlight++;
    this.#sent++;
    this.#connection().send(this.#nextRequest(), since);
  }

  #connection(): Connection {
    if (
      this.#schedule.kind !== "open" ||
      this.#schedule.connections === undefined
    ) {
      return this.#free.pop() ?? this.#open();
    }
    return this.#all.size < this.#schedule.connections
      ? this.#open()
      : (this.#free.shift() ?? this.#open());
  }

  #open(): Connection {
    const connection = connect(this.#port, {
      onAnswer: (answer) => {
        this.#inFlight--;
        this.#measurements.add(answer);
        this.#free.push(connection);
        this.#pump();
      },
      onBroken: (reason) => {
        this.#inFlight--;
        this.#all.delete(connection);
        this.#measurements.addError(reason);
        this.#pump();
      },
      onIdleEnd: () => {
        this.#all.delete(connection);
        const at = this.#free.indexOf(connection);
        if (at >= 0) {
          this.#free.splice(at, 1);
        }
      },
    });
    this.#all.add(connection);
    return connection;
  }
}

answerParent((order: LoadRun) => new LoadGenerator(order).run());
