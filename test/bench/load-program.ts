// The load generator in its own process.
import { connect, type Answer, type Connection } from "./load-connection.ts";
import { createRequests, type RequestOptions } from "./load-requests.ts";
import { latencyOf, type Latency } from "./latencies.ts";
import { answerParent } from "./programs.ts";

/** The schedule of calls. */
export type Schedule =
  /** Each of `concurrency` connections sends its next call when the last one was answered. */
  | {
      readonly kind: "closed";
      readonly concurrency: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    }
  /** Closed loop of a fixed number of calls, counted from the first. */
  | {
      readonly kind: "count";
      readonly concurrency: number;
      readonly calls: number;
    }
  /** `rate` calls a second, sent when they are due whether or not others were answered; latency counts from when they were due. */
  | {
      readonly kind: "open";
      readonly rate: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    };

export interface LoadRun extends RequestOptions {
  readonly schedule: Schedule;
}

export interface LoadResult {
  /** Calls inside the measured time, and how long that was. */
  readonly calls: number;
  readonly seconds: number;
  readonly latency: Latency | null;
  /** Until the first byte of the body. */
  readonly firstByte: Latency | null;
  readonly cacheHits: number;
  readonly hitLatency: Latency | null;
  /** All calls answered with 200, the warm-up's and the last ones among them. */
  readonly answered: number;
  readonly answeredFromCache: number;
  readonly errors: number;
  readonly firstError: string | null;
}

/** More calls in flight than this are not sent at once: they wait, and their latency counts the wait. */
const MAX_CONNECTIONS = 1_000;

async function run(order: LoadRun): Promise<LoadResult> {
  const { schedule, port } = order;
  const nextRequest = createRequests(order);
  const free: Connection[] = [];
  const all = new Set<Connection>();
  const latencies: number[] = [];
  const firstBytes: number[] = [];
  const hits: number[] = [];
  const startedAt = performance.now();
  const warmupMs = schedule.kind === "count" ? 0 : schedule.warmupMs;
  const measureFrom = startedAt + warmupMs;
  const measureUntil =
    schedule.kind === "count" ? Infinity : measureFrom + schedule.durationMs;
  let answered = 0;
  let answeredFromCache = 0;
  let errors = 0;
  let firstError: string | null = null;
  let inFlight = 0;
  let sent = 0;
  let lastEnd = startedAt;
  let lastMeasured = measureFrom;
  const done = Promise.withResolvers<void>();

  function measured({ since, endedAt }: Answer): boolean {
    return schedule.kind === "open"
      ? since >= measureFrom && since < measureUntil
      : endedAt >= measureFrom && (endedAt < measureUntil || isEmpty());
  }

  /** A rate needs an answer: a closed loop waits for one however long it takes, as on a machine that is busy. */
  function isEmpty(): boolean {
    return latencies.length === 0;
  }

  function finish(answer: Answer): void {
    const { since, endedAt, firstByteAt, cacheHit } = answer;
    lastEnd = endedAt;
    if (answer.status !== 200) {
      return fail(`${answer.status} ${answer.text.slice(0, 300)}`);
    }
    answered++;
    if (cacheHit) {
      answeredFromCache++;
    }
    if (!measured(answer)) {
      return;
    }
    lastMeasured = endedAt;
    latencies.push(endedAt - since);
    firstBytes.push(firstByteAt - since);
    if (cacheHit) {
      hits.push(endedAt - since);
    }
  }

  function fail(reason: string): void {
    errors++;
    firstError ??= reason;
  }

  function open(): Connection {
    const connection = connect(port, {
      onAnswer(answer) {
        inFlight--;
        finish(answer);
        free.push(connection);
        pump();
      },
      onBroken(reason) {
        inFlight--;
        all.delete(connection);
        fail(reason);
        pump();
      },
      onIdleEnd() {
        all.delete(connection);
        const at = free.indexOf(connection);
        if (at >= 0) {
          free.splice(at, 1);
        }
      },
    });
    all.add(connection);
    return connection;
  }

  function send(since: number): void {
    inFlight++;
    sent++;
    (free.pop() ?? open()).send(nextRequest(), since);
  }

  /** When the next call of an open loop is due. */
  const dueAt = () =>
    startedAt + (sent * 1_000) / (schedule.kind === "open" ? schedule.rate : 1);

  function mayGoOn(): boolean {
    // A target that fails every call ends the run early.
    if (errors > 100 && errors > answered) {
      return false;
    }
    switch (schedule.kind) {
      case "count":
        return sent < schedule.calls;
      case "closed":
        return performance.now() < measureUntil || isEmpty();
      case "open":
        return dueAt() < measureUntil;
    }
  }

  function pump(): void {
    if (schedule.kind === "open") {
      while (
        dueAt() <= performance.now() &&
        inFlight < MAX_CONNECTIONS &&
        mayGoOn()
      ) {
        send(dueAt());
      }
    } else {
      while (inFlight < schedule.concurrency && mayGoOn()) {
        send(performance.now());
      }
    }
    if (inFlight === 0 && !mayGoOn()) {
      done.resolve();
    }
  }

  const ticking = setInterval(pump, 1);
  pump();
  await done.promise;
  clearInterval(ticking);
  for (const connection of all) {
    connection.close();
  }
  const seconds =
    (schedule.kind === "count"
      ? lastEnd - startedAt
      : schedule.kind === "closed"
        ? Math.max(schedule.durationMs, lastMeasured - measureFrom)
        : schedule.durationMs) / 1_000;
  return {
    calls: latencies.length,
    seconds,
    latency: latencyOf(latencies),
    firstByte: latencyOf(firstBytes),
    cacheHits: hits.length,
    hitLatency: latencyOf(hits),
    answered,
    answeredFromCache,
    errors,
    firstError,
  };
}

answerParent((order: LoadRun) => run(order));
