// The load generator in its own process.
import { connect, type Connection } from "./load-connection.ts";
import {
  createRequests,
  type NextRequest,
  type RequestOptions,
} from "./load-requests.ts";
import { Measurements, type LoadResult } from "./load-measurements.ts";
import { answerParent } from "./programs.ts";
import {
  MAX_CONNECTIONS,
  startPeriod,
  type Period,
  type Schedule,
} from "./load-schedule.ts";

export interface LoadRun extends RequestOptions {
  readonly schedule: Schedule;
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
      const { rate, giveUpAt = Infinity } = this.#schedule;
      while (
        this.#dueAt(rate) <= performance.now() &&
        this.#inFlight < MAX_CONNECTIONS &&
        this.#mayContinue()
      ) {
        this.#send(this.#dueAt(rate));
        if (this.#inFlight >= giveUpAt) {
          this.#measurements.giveUp();
        }
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
    // A target that fails every call, or does not keep up, ends the run early.
    if (this.#measurements.mostlyFailed || this.#measurements.gaveUp) {
      return false;
    }
    switch (this.#schedule.kind) {
      case "count":
        return this.#sent < this.#schedule.calls;
      case "closed":
        return (
          performance.now() < this.#period.measureUntil ||
          this.#measurements.isTooFew
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
