import { setTimeout as sleep } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure, sentencesOf } from "../../../core/failure.ts";
import type { ServiceState, ServiceView } from "../runtime.ts";
import { describeCrash, untilAborted, untilHealthy } from "./health.ts";
import type { ProcessIdentity } from "./identity.ts";
import { launch, takeOver, type Running } from "./launch.ts";
import { lastLines, rotate, sizeOf } from "./log-files.ts";
import { nextRestart, type RestartPolicy } from "./restart-budget.ts";
import { killGroup, sendSignal, stopProcess } from "./stop.ts";
import type { ServiceSpec } from "./service-spec.ts";

interface ServiceEvents {
  /** After every change of state. */
  readonly changed: (view: ServiceView, before: ServiceState) => void;
  /** An automatic restart was decided. */
  readonly restarting: (name: string, reason: string) => void;
  /** Times of earlier automatic restarts. */
  readonly earlierRestarts: (name: string) => readonly number[];
  /** Too little disk space to start: attempts continue beyond the budget. */
  readonly isDiskFull: () => boolean;
  /** Resolves when all these services run. */
  readonly untilRunning: (
    names: readonly string[],
    signal: AbortSignal,
  ) => Promise<void>;
}

type Attempt =
  | { readonly kind: "up"; readonly running: Running }
  | { readonly kind: "failed"; readonly sentences: readonly string[] };

/** The life cycle of one service: start, watch for its end, restart with back-off and budget, stop. */
export class Service {
  readonly spec: ServiceSpec;
  readonly #logFile: string;
  readonly #policy: RestartPolicy;
  readonly #events: ServiceEvents;
  #view: ServiceView;
  #running: Running | undefined;
  #wanted = false;
  #restartAsked = false;
  /** Aborted to interrupt whatever the life cycle waits for. */
  #turn = new AbortController();
  #life: Promise<void> = Promise.resolve();
  #firstUp = Promise.withResolvers<void>();

  constructor(
    spec: ServiceSpec,
    logFile: string,
    policy: RestartPolicy,
    events: ServiceEvents,
  ) {
    this.spec = spec;
    this.#logFile = logFile;
    this.#policy = policy;
    this.#events = events;
    this.#view = {
      name: spec.name,
      state: "stopped",
      since: Date.now(),
      pid: null,
      address: spec.address,
      port: spec.port,
      adopted: false,
      tookMs: null,
      restarts: 0,
      reason: null,
    };
  }

  view(): ServiceView {
    return this.#view;
  }

  identity(): ProcessIdentity | undefined {
    return this.#running;
  }

  /** Starts the service (or takes over a process) and keeps it running; resolves when it is up for the first time. */
  start(adopted?: ProcessIdentity): Promise<void> {
    this.#wanted = true;
    this.#turn = new AbortController();
    this.#firstUp = Promise.withResolvers<void>();
    this.#life = this.#live(adopted);
    return this.#firstUp.promise;
  }

  /** Stops the process within `withinMs`, if that is less than its own limit, and starts it again. */
  async restart(reason: string, withinMs?: number): Promise<void> {
    if (!this.#wanted) {
      throw new Failure(
        `${this.spec.name} is stopped: run \`hearth up\` to start all services.`,
      );
    }
    this.#restartAsked = true;
    const earlier = this.#firstUp;
    this.#firstUp = Promise.withResolvers<void>();
    // An earlier restart that still waits ends with this one.
    this.#firstUp.promise.then(earlier.resolve, earlier.reject);
    this.#become("stopping", { reason });
    this.#turn.abort();
    await this.#end(withinMs);
    await this.#firstUp.promise;
  }

  async stop(reason: string): Promise<void> {
    this.#wanted = false;
    this.#turn.abort();
    if (this.#running !== undefined) {
      this.#become("stopping", { reason });
    }
    await this.#end();
    await this.#life;
    this.#firstUp.promise.catch(() => {});
    this.#firstUp.reject(new Failure(`${this.spec.name} was stopped.`));
    if (this.#view.state !== "stopped") {
      this.#become("stopped", { reason });
    }
  }

  /** Ends the process at once. */
  halt(): void {
    this.#wanted = false;
    this.#turn.abort();
    if (this.#running === undefined) {
      return;
    }
    if (this.spec.haltSignal === "SIGKILL") {
      killGroup(this.#running);
    } else {
      sendSignal(this.#running, this.spec.haltSignal);
    }
  }

  #become(state: ServiceState, more: Partial<ServiceView> = {}): void {
    const before = this.#view.state;
    this.#view = {
      ...this.#view,
      reason: null,
      ...more,
      state,
      since: Date.now(),
    };
    this.#events.changed(this.#view, before);
  }

  async #live(adopted: ProcessIdentity | undefined): Promise<void> {
    let wasUp = false;
    let next: Attempt | undefined;
    if (adopted !== undefined) {
      this.#running = takeOver(adopted);
      this.#become("running", { pid: adopted.pid, adopted: true });
      next = { kind: "up", running: this.#running };
    }
    while (this.#wanted) {
      const outcome = next ?? (await this.#attempt());
      next = undefined;
      let reason: string;
      if (outcome.kind === "up") {
        wasUp = true;
        this.#firstUp.resolve();
        reason = await outcome.running.ended;
        this.#forget(outcome.running);
      } else {
        reason = outcome.sentences.join(" ");
        const interrupted = !this.#wanted || this.#restartAsked;
        if (!interrupted) {
          this.#firstUp.reject(new Failure(outcome.sentences));
        }
        if (!interrupted && !wasUp) {
          this.#wanted = false;
          this.#become("stopped", { reason });
          return;
        }
      }
      if (!this.#wanted) {
        break;
      }
      if (this.#restartAsked) {
        this.#restartAsked = false;
        this.#turn = new AbortController();
        continue;
      }
      await this.#pauseBeforeRestart(reason);
    }
  }

  async #attempt(): Promise<Attempt> {
    const { spec } = this;
    const logFrom = sizeOf(this.#logFile);
    const started = performance.now();
    try {
      this.#become("waiting");
      await this.#events.untilRunning(spec.needs, this.#turn.signal);
      await spec.prepare();
      this.#turn.signal.throwIfAborted();
      rotate(this.#logFile);
      const running = await launch(spec.plan(), this.#logFile);
      this.#running = running;
      const { pid } = running;
      this.#become("starting", { pid, adopted: false, tookMs: null });
      const failure = await untilHealthy(spec, running, this.#turn.signal);
      if (failure === undefined) {
        await spec.afterUp();
        this.#turn.signal.throwIfAborted();
        const tookMs = Math.round(performance.now() - started);
        this.#become("running", { tookMs });
        return { kind: "up", running };
      }
      await this.#end();
      const log = lastLines(this.#logFile, 200, logFrom);
      const explained = spec.explain(log);
      const sentences =
        explained.length > 0
          ? explained
          : [describeCrash(spec.name, failure, log)];
      return { kind: "failed", sentences };
    } catch (error) {
      await this.#end();
      return { kind: "failed", sentences: sentencesOf(error) };
    }
  }

  /** Ends the process, if there is one. */
  async #end(withinMs: number = this.spec.stopWithinMs): Promise<void> {
    const ending = this.#running;
    if (ending === undefined) {
      return;
    }
    const { stopSignal, stopWithinMs } = this.spec;
    await stopProcess(ending, stopSignal, Math.min(withinMs, stopWithinMs));
    await ending.ended;
    this.#forget(ending);
  }

  #forget(ended: Running): void {
    if (this.#running !== ended) {
      return;
    }
    this.#running = undefined;
    this.#view = { ...this.#view, pid: null };
  }

  async #pauseBeforeRestart(reason: string): Promise<void> {
    const { name } = this.spec;
    const policy = this.#policy;
    const next = nextRestart(
      policy,
      this.#events.earlierRestarts(name),
      Date.now(),
    );
    const delay =
      next === "used-up" && this.#events.isDiskFull()
        ? policy.longestWaitMs
        : next;
    if (delay === "used-up") {
      this.#become("gave-up", {
        reason: `${reason}; gave up after ${policy.max} restarts in ${inWords(policy.perMs)}`,
      });
      await untilAborted(this.#turn.signal);
    } else {
      this.#become("backing-off", { reason });
      await sleep(delay, undefined, { signal: this.#turn.signal }).catch(
        () => {},
      );
      if (this.#wanted && !this.#restartAsked) {
        this.#view = { ...this.#view, restarts: this.#view.restarts + 1 };
        this.#events.restarting(name, reason);
      }
    }
    if (this.#turn.signal.aborted) {
      this.#turn = new AbortController();
    }
    this.#restartAsked = false;
  }
}
