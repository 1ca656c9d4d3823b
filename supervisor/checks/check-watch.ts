import { createHealer, type Healer } from "../healing/healer.ts";
import { withAuthor } from "../history/author.ts";
import { openJumpDetector } from "../../core/clock-jumps.ts";
import { startChecks } from "./start-checks.ts";
import { openCheckStore, type CheckStore } from "./check-store.ts";
import { openCheckAlarms, type CheckAlarms } from "./check-alarms.ts";
import { findExcuse } from "./find-excuse.ts";
import type { PingKind } from "./kinds/probe.ts";
import { openMaintenance, type Maintenance } from "./maintenance.ts";
import { openReferences } from "./references.ts";
import { runCheck, type CheckResult } from "./run-check.ts";
import { advance, enter, isUnjudged, type CheckMemory } from "./state.ts";
import type { Watch, WatchOptions } from "./watch.ts";
import {
  blockerOf,
  blocks,
  dependenciesOf,
  needsHealing,
  pauseOf,
  viewOf,
  type AllWatched,
  type CheckView,
  type Watched,
} from "./watched.ts";

/** Starts of the checks are this far apart. */
const STAGGER_MS = 50;

/** Probes every configured check at its own interval and restarts services by their healing rules. */
export function startWatch(options: WatchOptions): Watch {
  const watch = new CheckWatch(options);
  watch.start();
  return watch;
}

/** Probes all checks, judges the results, and heals. */
class CheckWatch implements Watch {
  readonly #options: WatchOptions;
  readonly #now: () => number;
  readonly #hasJumped: () => boolean;
  readonly #store: CheckStore;
  readonly #maintenance: Maintenance;
  readonly #probeOffline: () => Promise<boolean>;
  readonly #alarms: CheckAlarms;
  readonly #healer: Healer;
  readonly #all: AllWatched;
  /** Undefined until the first result: the alarm may be of the previous process. */
  #isOffline: boolean | undefined;
  #stopped = false;

  constructor(options: WatchOptions) {
    const { config, runtime, history, now = Date.now } = options;
    const { awake = () => performance.now() } = options;
    const { references, timeout } = config.offline;
    const timeZone = config.jobs.time_zone;
    const alarms = openCheckAlarms(options.alarms, timeZone);
    this.#options = options;
    this.#now = now;
    this.#hasJumped = openJumpDetector(now, awake);
    this.#store = openCheckStore(history.db, options.onError);
    this.#maintenance = openMaintenance(config.maintenance, history.db);
    this.#probeOffline = openReferences(references, timeout).isOffline;
    this.#alarms = alarms;
    this.#healer = createHealer({ runtime, history, alarms, timeZone, now });
    alarms.restrictHealing(
      config.checks.flatMap(({ heal }) => heal?.restart ?? []),
    );
    this.#all = startChecks({
      checks: config.checks,
      store: this.#store,
      alarms,
      history,
      now,
    });
  }

  /** Schedules the first probe of every check. */
  start(): void {
    for (const [index, watched] of [...this.#all.values()].entries()) {
      this.#schedule(watched, index * STAGGER_MS);
    }
  }

  readonly list = (): readonly CheckView[] =>
    [...this.#all.values()].map((watched) => this.#show(watched));

  readonly probeNow = async (name: string): Promise<CheckView | undefined> => {
    const watched = this.#all.get(name);
    if (watched === undefined) {
      return undefined;
    }
    // A probe in progress may have read what has changed since.
    await watched.probing;
    await this.#probe(watched);
    return this.#show(watched);
  };

  readonly resetHealing = (service: string): void => {
    this.#healer.renew(service);
    for (const watched of this.#healedBy(service)) {
      watched.healing = null;
    }
  };

  readonly pause = (name: string, why: string): CheckView | undefined => {
    const watched = this.#all.get(name);
    if (watched === undefined) {
      return undefined;
    }
    clearTimeout(watched.timer);
    watched.paused = why;
    watched.note = why;
    this.#move(watched, enter(watched.memory, "paused", this.#now()), why);
    this.#store.remember(watched);
    return this.#show(watched);
  };

  readonly resume = (name: string): CheckView | undefined => {
    const watched = this.#all.get(name);
    if (watched === undefined || watched.paused === null) {
      return watched && this.#show(watched);
    }
    watched.paused = null;
    watched.note = null;
    this.#move(
      watched,
      enter(watched.memory, "new", this.#now()),
      withAuthor("resumed"),
    );
    this.#schedule(watched, 0);
    return this.#show(watched);
  };

  readonly maintenance: Watch["maintenance"] = {
    open: (now) => this.#maintenance.open(now),
    start: (checks, forMs, why, at) => {
      const window = this.#maintenance.start(checks, forMs, why, at);
      for (const watched of this.#all.values()) {
        if (watched.paused === null) {
          this.#applyMaintenance(watched);
        }
      }
      return window;
    },
    end: (idOrChecks, at) => {
      const ended = this.#maintenance.end(idOrChecks, at);
      for (const watched of this.#all.values()) {
        if (watched.memory.state === "maintenance") {
          this.#schedule(watched, 0);
        }
      }
      return ended;
    },
  };

  readonly ping = async (
    name: string,
    kind: PingKind,
    text: string | null,
  ): Promise<CheckView | undefined> => {
    const watched = this.#all.get(name);
    if (watched?.check.kind !== "heartbeat") {
      return undefined;
    }
    this.#store.ping(name, kind, text, this.#now());
    if (watched.paused === null) {
      await this.#probe(watched);
    }
    return this.#show(watched);
  };

  readonly stop = (): void => {
    this.#stopped = true;
    for (const watched of this.#all.values()) {
      clearTimeout(watched.timer);
      this.#store.remember(watched);
    }
  };

  #show(watched: Watched): CheckView {
    return viewOf(watched, this.#all, this.#options.runtime);
  }

  #schedule(watched: Watched, delayMs: number): void {
    clearTimeout(watched.timer);
    if (this.#stopped || watched.paused !== null) {
      return;
    }
    watched.timer = setTimeout(() => void this.#probe(watched), delayMs);
  }

  /** One probe at a time; its result decides when the next one is due, whatever has caused it. */
  #probe(watched: Watched): Promise<void> {
    watched.probing ??= this.#probeAndJudge(watched)
      .catch(this.#options.onError)
      .finally(() => {
        watched.probing = undefined;
        this.#schedule(watched, pauseOf(watched));
      });
    return watched.probing;
  }

  async #probeAndJudge(watched: Watched): Promise<void> {
    if (this.#hasJumped()) {
      this.#resetCounts();
    }
    const { check, watchedSince, latest } = watched;
    const result = await runCheck(check, {
      now: this.#now(),
      watchedSince,
      runtime: this.#options.runtime,
      before: latest?.measures,
      measured: (measure, since) =>
        this.#store.measured(check.name, measure, since),
      pings: () => this.#store.pings(check.name),
    });
    if (this.#stopped) {
      return;
    }
    const blockedOthers = blocks(watched);
    watched.latest = result;
    if (watched.paused !== null) {
      return;
    }
    await this.#judge(watched, result);
    if (blockedOthers && !blocks(watched)) {
      watched.backSince = result.at;
    }
    // Not awaited: the checks that depend on this one must not hang while its service restarts.
    this.#heal(watched).catch(this.#options.onError);
  }

  /** After a sleep of the machine, networks and dependencies need time: earlier failures are meaningless. */
  #resetCounts(): void {
    for (const watched of this.#all.values()) {
      watched.memory = { ...watched.memory, failures: 0, successes: 0 };
      watched.failingSince = undefined;
    }
  }

  async #judge(watched: Watched, result: CheckResult): Promise<void> {
    const { check } = watched;
    if (this.#applyMaintenance(watched)) {
      return this.#store.record(watched, false);
    }
    if (!result.ok || this.#isOffline !== false) {
      await this.#updateOffline();
    }
    if (!result.ok && this.#isOffline === true) {
      watched.note = "this machine is offline; failures are not counted";
      if (watched.memory.state === "maintenance") {
        const memory = enter(watched.memory, "new", this.#now());
        this.#move(watched, memory, "maintenance ended");
      }
      return this.#store.record(watched, false);
    }
    watched.failingSince = result.ok
      ? undefined
      : (watched.failingSince ?? result.at);
    const excuse = result.ok ? undefined : await this.#excuseFor(watched);
    if (this.#stopped || watched.paused !== null) {
      return;
    }
    watched.note = excuse ?? null;
    this.#store.record(watched, true);
    const failure = excuse === undefined ? "failed" : "excused";
    const memory = advance(
      watched.memory,
      result.ok ? "ok" : failure,
      { failAfter: check.fail_after, recoverAfter: check.recover_after },
      this.#now(),
    );
    this.#move(watched, memory, result.text);
  }

  #excuseFor(watched: Watched): Promise<string | undefined> {
    return findExcuse(watched, {
      all: this.#all,
      runtime: this.#options.runtime,
      now: this.#now,
      probe: (dependency) => this.#probe(dependency),
    });
  }

  /** Moves a check into maintenance; true while it is in maintenance. The first result afterwards ends it. */
  #applyMaintenance(watched: Watched): boolean {
    const { memory, check } = watched;
    const now = this.#now();
    const window = this.#maintenance.of(check.name, now);
    if (window === undefined) {
      return false;
    }
    watched.note = window.why;
    this.#move(watched, enter(memory, "maintenance", now), window.why);
    return true;
  }

  async #updateOffline(): Promise<void> {
    const before = this.#isOffline;
    this.#isOffline = await this.#probeOffline();
    if (before !== this.#isOffline && !this.#stopped) {
      this.#alarms.setOffline(this.#isOffline);
    }
  }

  #move(watched: Watched, memory: CheckMemory, reason: string): void {
    const { check, memory: before } = watched;
    watched.memory = memory;
    if (isUnjudged(memory.state)) {
      watched.failingSince = undefined;
    }
    if (memory.state !== before.state) {
      if (memory.state === "up") {
        watched.healing = null;
        if (check.heal !== undefined) {
          this.#alarms.healed(check.heal.restart);
        }
      }
      const { history, onChange } = this.#options;
      history.checkChanged(check.name, before.state, memory.state, reason);
      this.#store.remember(watched);
      onChange(this.#show(watched), before.state);
    } else if (memory.flapping !== before.flapping) {
      this.#store.remember(watched);
    }
    this.#notify(watched);
  }

  #notify(watched: Watched): void {
    const { check, memory, healing } = watched;
    const tried =
      check.heal === undefined
        ? []
        : [...this.#healer.tried(check.heal.restart, memory.since)];
    this.#alarms.notify(
      this.#show(watched),
      healing === null ? tried : [...tried, healing],
    );
  }

  async #heal(watched: Watched): Promise<void> {
    const { check, latest } = watched;
    const rule = check.heal;
    if (
      this.#isOffline === true ||
      rule === undefined ||
      latest === null ||
      !needsHealing(watched) ||
      !this.#mayRestart(rule.restart)
    ) {
      return;
    }
    const outcome = await this.#healer.heal({
      rule,
      check: check.name,
      why: latest.text,
      closedSince: latest.closed ? watched.failingSince : undefined,
      confirm: async () => {
        const dependencies = dependenciesOf(watched, this.#all);
        await Promise.all(dependencies.map((each) => this.#probe(each)));
        return !this.#stopped && blockerOf(watched, this.#all) === null;
      },
    });
    if (this.#stopped) {
      return;
    }
    if (outcome.text !== null) {
      watched.healing = outcome.text;
    }
    if (outcome.restarted) {
      for (const other of this.#healedBy(rule.restart)) {
        other.memory = { ...other.memory, failures: 0, successes: 0 };
      }
    }
    if (outcome.restarted || outcome.text !== null) {
      this.#notify(watched);
    }
  }

  #healedBy(service: string): readonly Watched[] {
    return [...this.#all.values()].filter(
      ({ check }) => check.heal?.restart === service,
    );
  }

  /** A service whose own check is paused or in maintenance must not be restarted by another check. */
  #mayRestart(service: string): boolean {
    return (
      this.#maintenance.of(service, this.#now()) === undefined &&
      (this.#all.get(service)?.paused ?? null) === null
    );
  }
}
