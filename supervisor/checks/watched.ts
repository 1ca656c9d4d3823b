import { isWithin } from "../../core/clock-jumps.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { Recalled } from "./check-history.ts";
import type { Check } from "./config.ts";
import { serviceOf } from "./excuses.ts";
import type { CheckResult } from "./run-check.ts";
import { newMemory, type CheckMemory, type CheckState } from "./state.ts";

export interface CheckView {
  readonly name: string;
  readonly kind: Check["kind"];
  readonly state: CheckState;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** An unhealthy dependency: the check raises no alarm and is not healed. */
  readonly inhibitedBy: string | null;
  /** More than four changes in ten minutes. */
  readonly flapping: boolean;
  readonly latest: CheckResult | null;
  /** The result of healing ("gave up …"), if any. */
  readonly healing: string | null;
  /** Why it is not judged now: pause, maintenance, a dependency. */
  readonly note: string | null;
  /** The service of the check, if this supervisor runs it. */
  readonly service: string | null;
}

/** A check with its current state. */
export interface Watched {
  readonly check: Check;
  readonly watchedSince: number;
  memory: CheckMemory;
  latest: CheckResult | null;
  /** Start of the current series of failures. */
  failingSince: number | undefined;
  /** When it last stopped blocking its dependents. */
  backSince: number | undefined;
  /** Why it is paused. */
  paused: string | null;
  note: string | null;
  healing: string | null;
  probing: Promise<void> | undefined;
  timer: NodeJS.Timeout | undefined;
}

export type AllWatched = ReadonlyMap<string, Watched>;

const MIN_RECHECK_MS = 1000;
const MAX_RECHECK_MS = 30_000;

/** The initial state of a check, from that of the previous supervisor. */
export function startWatched(
  check: Check,
  recalled: Recalled | undefined,
  now: number,
): Watched {
  const known = recalled?.kind === check.kind ? recalled : undefined;
  return {
    check,
    watchedSince: known?.watchedSince ?? now,
    // Counts are reset: a single probe after a restart of the supervisor must not restart anything.
    memory: {
      ...(known?.memory ?? newMemory(now)),
      failures: 0,
      successes: 0,
    },
    latest: known?.latest ?? null,
    failingSince: undefined,
    backSince: undefined,
    paused: known?.paused ?? null,
    note: known?.paused ?? null,
    healing: null,
    probing: undefined,
    timer: undefined,
  };
}

export function viewOf(
  watched: Watched,
  all: AllWatched,
  runtime: Runtime | undefined,
): CheckView {
  const { check, memory, latest, healing, note } = watched;
  const service = serviceOf(check);
  return {
    name: check.name,
    kind: check.kind,
    state: memory.state,
    since: memory.since,
    inhibitedBy: memory.state === "up" ? null : blockerOf(watched, all),
    flapping: memory.flapping,
    latest,
    healing,
    note,
    service: runtime?.inspect(service) === undefined ? null : service,
  };
}

export function dependenciesOf(
  { check }: Watched,
  all: AllWatched,
): readonly Watched[] {
  return check.depends_on.flatMap((name) => all.get(name) ?? []);
}

/** The unhealthy dependency of a check, if any; the root cause, if known. */
export function blockerOf(watched: Watched, all: AllWatched): string | null {
  for (const dependency of dependenciesOf(watched, all)) {
    if (blocks(dependency)) {
      return blockerOf(dependency, all) ?? dependency.check.name;
    }
  }
  return null;
}

/** Whether it is unhealthy, so that its dependents may fail, too. */
export function blocks({ memory, latest, paused }: Watched): boolean {
  const fails = memory.state === "down" || latest?.ok === false;
  return paused === null && fails && latest?.level !== "warning";
}

/** A dependency that recovered within `sinceMs`: dependents need time to reconnect. */
export function recentlyRecovered(
  watched: Watched,
  all: AllWatched,
  sinceMs: number,
  now: number,
): string | null {
  for (const dependency of dependenciesOf(watched, all)) {
    const { backSince, check } = dependency;
    if (backSince !== undefined && isWithin(backSince, sinceMs, now)) {
      return check.name;
    }
    const cause = recentlyRecovered(dependency, all, sinceMs, now);
    if (cause !== null) {
      return cause;
    }
  }
  return null;
}

/** Down, by failures that a restart may fix; the count starts at zero after each restart. */
export function needsHealing({ check, memory, latest }: Watched): boolean {
  return (
    memory.state === "down" &&
    latest?.ok === false &&
    latest.level !== "warning" &&
    latest.restartFutile !== true &&
    memory.failures >= check.fail_after
  );
}

/** Delay before the next probe: in doubt six times as often, and at least twice a minute. */
export function pauseOf({ check, memory }: Watched): number {
  const doubtful =
    memory.state === "pending" ||
    (memory.successes > 0 && memory.state === "down");
  const often = Math.min(check.every / 6, MAX_RECHECK_MS);
  return doubtful
    ? Math.min(check.every, Math.max(MIN_RECHECK_MS, often))
    : check.every;
}
