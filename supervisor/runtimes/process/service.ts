import { setTimeout as wait } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure, sentencesOf } from "../../../core/failure.ts";
import type { ServiceState, ServiceView } from "../runtime.ts";
import { describeCrash, untilAborted, untilWell } from "./health.ts";
import type { ProcessIdentity } from "./identity.ts";
import { launch, takeOver, type Running } from "./launch.ts";
import { lastLines, rotate, sizeOf } from "./log-files.ts";
import { nextRestart, type RestartPolicy } from "./restart-budget.ts";
import { killGroup, sendSignal, stopProcess } from "./stop.ts";
import type { ServiceSpec } from "./service-spec.ts";

export interface ServiceEvents {
  /** After every change of state. */
  readonly changed: (view: ServiceView, before: ServiceState) => void;
  /** A restart by itself was decided; `earlier` gives the times of those before. */
  readonly restarting: (name: string, reason: string) => void;
  readonly earlierRestarts: (name: string) => readonly number[];
  /** There is too little room for a start: it is tried again beyond the budget. */
  readonly isDiskFull: () => boolean;
  /** Resolves when all these services run. */
  readonly untilRunning: (
    names: readonly string[],
    signal: AbortSignal,
  ) => Promise<void>;
}

export interface Service {
  readonly spec: ServiceSpec;
  readonly view: () => ServiceView;
  readonly identity: () => ProcessIdentity | undefined;
  /** Starts (or takes over) and keeps it running from then on; resolves when it is up the first time. */
  readonly start: (adopted?: ProcessIdentity) => Promise<void>;
  /** Gives what runs at most `withinMs` to end, when that is less than its own limit. */
  readonly restart: (reason: string, withinMs?: number) => Promise<void>;
  readonly stop: (reason: string) => Promise<void>;
  /** Ends it at once. */
  readonly halt: () => void;
}

type Attempt =
  | { readonly kind: "up"; readonly running: Running }
  | { readonly kind: "failed"; readonly sentences: readonly string[] };

/** The life of one service: start, watch its end, start again with back-off and budget, stop. */
export function createService(
  spec: ServiceSpec,
  logFile: string,
  policy: RestartPolicy,
  events: ServiceEvents,
): Service {
  let view: ServiceView = {
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
  let running: Running | undefined;
  let wanted = false;
  let toldToRestart: string | undefined;
  let turn = new AbortController();
  let life: Promise<void> = Promise.resolve();
  let firstUp = Promise.withResolvers<void>();

  function become(state: ServiceState, more: Partial<ServiceView> = {}): void {
    const before = view.state;
    view = { ...view, reason: null, ...more, state, since: Date.now() };
    events.changed(view, before);
  }

  async function attempt(): Promise<Attempt> {
    const logFrom = sizeOf(logFile);
    const begun = performance.now();
    try {
      become("waiting");
      await events.untilRunning(spec.needs, turn.signal);
      await spec.prepare();
      turn.signal.throwIfAborted();
      rotate(logFile);
      running = await launch(spec.plan(), logFile);
      become("starting", { pid: running.pid, adopted: false, tookMs: null });
      const failure = await untilWell(spec, running, turn.signal);
      if (failure === undefined) {
        await spec.afterUp();
        become("running", { tookMs: Math.round(performance.now() - begun) });
        return { kind: "up", running };
      }
      await end();
      const log = lastLines(logFile, 200, logFrom);
      const explained = spec.explain(log);
      return {
        kind: "failed",
        sentences:
          explained.length > 0
            ? explained
            : [describeCrash(spec.name, failure, log)],
      };
    } catch (error) {
      await end();
      return { kind: "failed", sentences: sentencesOf(error) };
    }
  }

  /** Ends the process, if there is one, and forgets it. */
  async function end(withinMs: number = spec.stopWithinMs): Promise<void> {
    const ending = running;
    if (ending === undefined) {
      return;
    }
    await stopProcess(
      ending,
      spec.stopSignal,
      Math.min(withinMs, spec.stopWithinMs),
    );
    await ending.ended;
    forget(ending);
  }

  function forget(ended: Running): void {
    if (running !== ended) {
      return;
    }
    running = undefined;
    view = { ...view, pid: null };
  }

  async function live(adopted: ProcessIdentity | undefined): Promise<void> {
    let everUp = false;
    let next: Attempt | undefined;
    if (adopted !== undefined) {
      running = takeOver(adopted);
      become("running", { pid: adopted.pid, adopted: true });
      next = { kind: "up", running };
    }
    while (wanted) {
      const outcome = next ?? (await attempt());
      next = undefined;
      let reason: string;
      if (outcome.kind === "up") {
        everUp = true;
        firstUp.resolve();
        reason = await outcome.running.ended;
        forget(outcome.running);
      } else {
        reason = outcome.sentences.join(" ");
        const told = !wanted || toldToRestart !== undefined;
        if (!told) {
          firstUp.reject(new Failure(outcome.sentences));
        }
        if (!told && !everUp) {
          wanted = false;
          become("stopped", { reason });
          return;
        }
      }
      if (!wanted) {
        break;
      }
      if (toldToRestart !== undefined) {
        toldToRestart = undefined;
        turn = new AbortController();
        continue;
      }
      await pauseBeforeRestart(reason);
    }
  }

  async function pauseBeforeRestart(reason: string): Promise<void> {
    const next = nextRestart(
      policy,
      events.earlierRestarts(spec.name),
      Date.now(),
    );
    const delay =
      next === "used-up" && events.isDiskFull() ? policy.longestWaitMs : next;
    if (delay === "used-up") {
      become("gave-up", {
        reason: `${reason}; started again ${policy.max} times in ${inWords(policy.perMs)}, now it waits for you`,
      });
      await untilAborted(turn.signal);
    } else {
      become("backing-off", { reason });
      await wait(delay, undefined, { signal: turn.signal }).catch(() => {});
      if (wanted && toldToRestart === undefined) {
        view = { ...view, restarts: view.restarts + 1 };
        events.restarting(spec.name, reason);
      }
    }
    if (turn.signal.aborted) {
      turn = new AbortController();
    }
    toldToRestart = undefined;
  }

  return {
    spec,
    view: () => view,
    identity: () => running,
    start: (adopted) => {
      wanted = true;
      turn = new AbortController();
      firstUp = Promise.withResolvers<void>();
      life = live(adopted);
      return firstUp.promise;
    },
    restart: async (reason, withinMs) => {
      if (!wanted) {
        throw new Failure(
          `${spec.name} is stopped: \`hearth up\` starts it with the others.`,
        );
      }
      toldToRestart = reason;
      firstUp = Promise.withResolvers<void>();
      firstUp.promise.catch(() => {});
      become("stopping", { reason });
      turn.abort();
      await end(withinMs);
      await firstUp.promise;
    },
    stop: async (reason) => {
      wanted = false;
      turn.abort();
      if (running !== undefined) {
        become("stopping", { reason });
      }
      await end();
      await life;
      firstUp.promise.catch(() => {});
      firstUp.reject(new Failure(`${spec.name} was stopped.`));
      if (view.state !== "stopped") {
        become("stopped", { reason });
      }
    },
    halt: () => {
      wanted = false;
      turn.abort();
      if (running === undefined) {
        return;
      }
      if (spec.haltSignal === "SIGKILL") {
        killGroup(running);
      } else {
        sendSignal(running, spec.haltSignal);
      }
    },
  };
}
