import type { Alarms } from "../alerts/alarm.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import type { History } from "../history/history.ts";
import { openJumpDetector } from "../moments.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import { beginChecks } from "./begin-checks.ts";
import { openBooks } from "./books.ts";
import { openCheckAlarms } from "./check-alarms.ts";
import { excuseOf, serviceOf, USUAL_GRACE_MS } from "./excuses.ts";
import { createHealer } from "../healing/healer.ts";
import type { PingKind } from "./kinds/look.ts";
import { openMaintenance, type Maintenance } from "./maintenance.ts";
import { openReferences } from "./references.ts";
import { runCheck, type CheckResult } from "./run-check.ts";
import {
  advance,
  enter,
  isUnjudged,
  type CheckMemory,
  type CheckState,
} from "./state.ts";
import {
  blockerOf,
  blocks,
  dependenciesOf,
  justBackOf,
  pauseOf,
  viewOf,
  type CheckView,
  type Watched,
} from "./watched.ts";

export interface Watch {
  readonly list: () => readonly CheckView[];
  /** Looks now and counts the result; undefined when there is no such check. */
  readonly lookNow: (name: string) => Promise<CheckView | undefined>;
  /** An operator took a service in hand: its healing may begin anew. */
  readonly renewHealing: (service: string) => void;
  /** Looks no more until it is resumed, also after a restart; undefined when there is no such check. */
  readonly pause: (name: string, why: string) => CheckView | undefined;
  readonly resume: (name: string) => CheckView | undefined;
  readonly maintenance: Pick<Maintenance, "open" | "begin" | "end">;
  /** A job tells its heartbeat how it goes; undefined when there is no such heartbeat. */
  readonly ping: (
    name: string,
    kind: PingKind,
    text: string | null,
  ) => Promise<CheckView | undefined>;
  readonly stop: () => void;
}

export interface WatchOptions {
  readonly config: Pick<
    SupervisorConfig,
    "checks" | "maintenance" | "offline" | "jobs"
  >;
  readonly runtime: Runtime | undefined;
  readonly history: History;
  readonly alarms: Alarms;
  readonly onChange: (view: CheckView, before: CheckState) => void;
  readonly onError: (error: unknown) => void;
  /** Milliseconds since 1970; the machine's clock unless a test passes its own. */
  readonly now?: () => number;
  /** Milliseconds that the machine was awake. */
  readonly awake?: () => number;
}

/** Looks at everything in the configuration, each in its own rhythm, and heals what has a rule for it. */
export function startWatch(options: WatchOptions): Watch {
  const { config, runtime, history } = options;
  const { now = Date.now, awake = () => performance.now() } = options;
  const hasJumped = openJumpDetector(now, awake);
  const books = openBooks(history.db, options.onError);
  const maintenance = openMaintenance(config.maintenance, history.db);
  const { references, timeout } = config.offline;
  const { cutOff } = openReferences(references, timeout);
  const timeZone = config.jobs.time_zone;
  const alarms = openCheckAlarms(options.alarms, timeZone);
  const healer = createHealer({ runtime, history, alarms, timeZone, now });
  let isCutOff = false;
  let stopped = false;

  const all = beginChecks({
    checks: config.checks,
    books,
    alarms,
    history,
    now,
  });

  const show = (watched: Watched) => viewOf(watched, all, runtime);

  function look(watched: Watched): Promise<void> {
    watched.looking ??= lookAndCount(watched)
      .catch(options.onError)
      .finally(() => {
        watched.looking = undefined;
        // Whoever asked for it: what it saw decides when to look again.
        schedule(watched, pauseOf(watched));
      });
    return watched.looking;
  }

  /** After a sleep, nothing has found its network and its dependencies again: what was counted before says nothing. */
  function startCountsAgain(): void {
    for (const watched of all.values()) {
      watched.memory = { ...watched.memory, failures: 0, successes: 0 };
      watched.failingSince = undefined;
    }
  }

  async function lookAndCount(watched: Watched): Promise<void> {
    if (hasJumped()) {
      startCountsAgain();
    }
    const { check, watchedSince, latest } = watched;
    const result = await runCheck(check, {
      now: now(),
      watchedSince,
      runtime,
      before: latest?.measures,
      measured: (measure, since) => books.measured(check.name, measure, since),
      pings: () => books.pings(check.name),
    });
    if (stopped) {
      return;
    }
    const wasInTheWay = blocks(watched);
    watched.latest = result;
    if (watched.paused !== null) {
      return;
    }
    await count(watched, result);
    if (wasInTheWay && !blocks(watched)) {
      watched.backSince = result.at;
    }
    // Not waited for: who depends on this one must not hang while its service restarts.
    heal(watched).catch(options.onError);
  }

  async function count(watched: Watched, result: CheckResult): Promise<void> {
    const { check } = watched;
    if (inMaintenance(watched)) {
      return books.record(watched, false);
    }
    if (!result.ok || isCutOff) {
      await seeWhetherCutOff();
    }
    if (!result.ok && isCutOff) {
      watched.note = "this machine itself is cut off, so nobody is judged";
      return books.record(watched, false);
    }
    watched.failingSince = result.ok
      ? undefined
      : (watched.failingSince ?? result.at);
    const excuse = result.ok ? undefined : await findExcuse(watched);
    if (stopped || watched.paused !== null) {
      return;
    }
    watched.note = excuse ?? null;
    books.record(watched, true);
    const verdict = result.ok
      ? "ok"
      : excuse === undefined
        ? "failed"
        : "excused";
    const thresholds = {
      failAfter: check.fail_after,
      recoverAfter: check.recover_after,
    };
    move(
      watched,
      advance(watched.memory, verdict, thresholds, now()),
      result.text,
    );
  }

  async function findExcuse(watched: Watched): Promise<string | undefined> {
    const { check, failingSince = now(), latest, memory } = watched;
    const blocked = () => {
      const blocker = blockerOf(watched, all);
      if (blocker !== null) {
        return `waits for ${blocker}`;
      }
      const back = justBackOf(watched, all, USUAL_GRACE_MS, now());
      return back === null ? undefined : `${back} has just come back`;
    };
    const aboutToFall =
      memory.state !== "down" && memory.failures + 1 >= check.fail_after;
    // What a runtime saw some seconds ago may be over: a container that crashed is being started again by Docker.
    if (aboutToFall) {
      await runtime?.look(serviceOf(check)).catch(() => {});
    }
    const excuse = excuseOf(check, runtime, failingSince, now()) ?? blocked();
    if (excuse !== undefined || !aboutToFall) {
      return excuse;
    }
    // Whoever is looked at more often must not be blamed for what its dependency did.
    await Promise.all(
      dependenciesOf(watched, all)
        .filter((each) => (each.latest?.at ?? 0) < (latest?.at ?? 0))
        .map(look),
    );
    return blocked();
  }

  function inMaintenance(watched: Watched): boolean {
    const window = maintenance.of(watched.check.name, now());
    const { state } = watched.memory;
    if (window === undefined) {
      if (state === "maintenance") {
        watched.note = null;
        move(
          watched,
          enter(watched.memory, "new", now()),
          "the maintenance is over",
        );
      }
      return false;
    }
    watched.note = `maintenance: ${window.why}`;
    move(watched, enter(watched.memory, "maintenance", now()), window.why);
    return true;
  }

  async function seeWhetherCutOff(): Promise<void> {
    const before = isCutOff;
    isCutOff = await cutOff();
    if (before !== isCutOff && !stopped) {
      alarms.cutOff(isCutOff);
    }
  }

  function move(watched: Watched, memory: CheckMemory, reason: string): void {
    const before = watched.memory;
    watched.memory = memory;
    if (isUnjudged(memory.state)) {
      watched.failingSince = undefined;
    }
    if (memory.state !== before.state) {
      const { check } = watched;
      if (memory.state === "up") {
        watched.healing = null;
        if (check.heal !== undefined) {
          alarms.healed(check.heal.restart);
        }
      }
      history.checkChanged(check.name, before.state, memory.state, reason);
      books.remember(watched);
      options.onChange(show(watched), before.state);
    } else if (memory.flapping !== before.flapping) {
      books.remember(watched);
    }
    tell(watched);
  }

  function tell(watched: Watched): void {
    const { check, memory } = watched;
    const tried =
      check.heal === undefined
        ? []
        : healer.tried(check.heal.restart, memory.since);
    alarms.tell(show(watched), [
      ...tried,
      ...(watched.healing === null ? [] : [watched.healing]),
    ]);
  }

  async function heal(watched: Watched): Promise<void> {
    const { check, memory, latest } = watched;
    const rule = check.heal;
    if (
      isCutOff ||
      rule === undefined ||
      memory.state !== "down" ||
      latest === null ||
      latest.ok ||
      latest.level === "warning" ||
      // The count begins anew after each restart.
      memory.failures < check.fail_after ||
      !mayBeTouched(rule.restart)
    ) {
      return;
    }
    const done = await healer.heal({
      rule,
      check: check.name,
      why: latest.text,
      stillRight: async () => {
        await Promise.all(dependenciesOf(watched, all).map(look));
        return !stopped && blockerOf(watched, all) === null;
      },
    });
    if (stopped) {
      return;
    }
    if (done.text !== null) {
      watched.healing = done.text;
    }
    if (done.restarted) {
      for (const other of all.values()) {
        if (other.check.heal?.restart === rule.restart) {
          other.memory = { ...other.memory, failures: 0, successes: 0 };
        }
      }
    }
    if (done.restarted || done.text !== null) {
      tell(watched);
    }
  }

  /** Whoever pauses the check of a service, or has it in maintenance, does not want it restarted by another one. */
  function mayBeTouched(service: string): boolean {
    return (
      maintenance.of(service, now()) === undefined &&
      (all.get(service)?.paused ?? null) === null
    );
  }

  function schedule(watched: Watched, delayMs: number): void {
    clearTimeout(watched.timer);
    if (stopped || watched.paused !== null) {
      return;
    }
    watched.timer = setTimeout(() => void look(watched), delayMs);
  }

  for (const [index, watched] of [...all.values()].entries()) {
    schedule(watched, index * 50);
  }

  return {
    list: () => [...all.values()].map(show),
    lookNow: async (name) => {
      const watched = all.get(name);
      if (watched === undefined) {
        return undefined;
      }
      await look(watched);
      return show(watched);
    },
    renewHealing: (service) => {
      healer.renew(service);
      for (const watched of all.values()) {
        if (watched.check.heal?.restart === service) {
          watched.healing = null;
        }
      }
    },
    pause: (name, why) => {
      const watched = all.get(name);
      if (watched === undefined) {
        return undefined;
      }
      clearTimeout(watched.timer);
      watched.paused = why;
      watched.note = why;
      move(watched, enter(watched.memory, "paused", now()), why);
      books.remember(watched);
      return show(watched);
    },
    resume: (name) => {
      const watched = all.get(name);
      if (watched === undefined || watched.paused === null) {
        return watched && show(watched);
      }
      watched.paused = null;
      watched.note = null;
      move(watched, enter(watched.memory, "new", now()), "resumed");
      schedule(watched, 0);
      return show(watched);
    },
    maintenance: {
      open: maintenance.open,
      begin: (checks, forMs, why, at) => {
        const window = maintenance.begin(checks, forMs, why, at);
        for (const watched of all.values()) {
          if (watched.paused === null) {
            inMaintenance(watched);
          }
        }
        return window;
      },
      end: (id, at) => {
        const window = maintenance.end(id, at);
        for (const watched of all.values()) {
          if (watched.memory.state === "maintenance") {
            schedule(watched, 0);
          }
        }
        return window;
      },
    },
    ping: async (name, kind, text) => {
      const watched = all.get(name);
      if (watched?.check.kind !== "heartbeat") {
        return undefined;
      }
      books.ping(name, kind, text, now());
      if (watched.paused === null) {
        await look(watched);
      }
      return show(watched);
    },
    stop: () => {
      stopped = true;
      for (const watched of all.values()) {
        clearTimeout(watched.timer);
        books.remember(watched);
      }
    },
  };
}
