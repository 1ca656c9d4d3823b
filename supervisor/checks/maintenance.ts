import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { MINUTE_MS } from "../../core/duration.ts";
import { isOpen } from "../../core/clock-jumps.ts";
import { openSchedule } from "../../core/schedule.ts";
import type { MaintenancePlan } from "./config.ts";

/** A time without alarms and restarts. Times in milliseconds since 1970. */
export interface MaintenanceWindow {
  readonly id: string;
  /** Names of checks; null means all. */
  readonly checks: readonly string[] | null;
  readonly from: number;
  readonly until: number;
  readonly why: string;
}

export interface Maintenance {
  /** The current windows, planned and opened by an operator. */
  readonly open: (now: number) => readonly MaintenanceWindow[];
  /** The current window of a check; the one that ends last. */
  readonly of: (check: string, now: number) => MaintenanceWindow | undefined;
  /** Opens a window from now on. */
  readonly start: (
    checks: readonly string[] | null,
    forMs: number,
    why: string,
    now: number,
  ) => MaintenanceWindow;
  /** Ends the windows that an operator opened with this id, or for these checks: "gateway,notes" as they were named, or "all". */
  readonly end: (
    idOrChecks: string,
    now: number,
  ) => readonly MaintenanceWindow[];
}

/** Planned windows of the configuration, and windows opened by an operator, which persist across restarts. */
export function openMaintenance(
  plans: readonly MaintenancePlan[],
  db: DatabaseSync,
): Maintenance {
  const openByPlan = plans.map(scheduleWindows);
  const add = db.prepare(
    "INSERT INTO maintenance (id, checks, begins_at, ends_at, why) VALUES (?, ?, ?, ?, ?)",
  );
  const shorten = db.prepare("UPDATE maintenance SET ends_at = ? WHERE id = ?");
  let byHand: readonly MaintenanceWindow[] = db
    .prepare("SELECT * FROM maintenance WHERE ends_at > ?")
    .all(Date.now())
    .map(windowOf);

  const open = (now: number): readonly MaintenanceWindow[] => [
    ...openByPlan.flatMap((windowAt) => windowAt(now) ?? []),
    ...byHand.filter((window) => isOpen(window, now)),
  ];

  return {
    open,
    of: (check, now) =>
      open(now)
        .filter(({ checks }) => checks === null || checks.includes(check))
        .toSorted((a, b) => b.until - a.until)[0],
    start: (checks, forMs, why, now) => {
      const id = randomUUID().slice(0, 8);
      const window = { id, checks, from: now, until: now + forMs, why };
      const names = checks === null ? null : JSON.stringify(checks);
      add.run(id, names, now, window.until, why);
      byHand = [...byHand, window];
      return window;
    },
    end: (idOrChecks, now) => {
      const ended = byHand.filter(
        ({ id, checks, until }) =>
          until > now &&
          [id, (checks ?? ["all"]).join(",")].includes(idOrChecks),
      );
      for (const { id } of ended) {
        shorten.run(now, id);
      }
      byHand = byHand.filter((each) => !ended.includes(each));
      return ended.map((window) => ({ ...window, until: now }));
    },
  };
}

/** The window of a plan that is open at a time. */
function scheduleWindows(
  plan: MaintenancePlan,
  index: number,
): (now: number) => MaintenanceWindow | undefined {
  const id = plan.name ?? `plan-${index + 1}`;
  const latestStart = everyMinute(
    openSchedule(plan.weekly ?? plan.cron ?? "", plan.time_zone).latest,
  );
  return (now) => {
    const from = latestStart(now);
    if (from === undefined || now >= from + plan.for) {
      return undefined;
    }
    const until = from + plan.for;
    const checks = plan.checks ?? null;
    return { id, checks, from, until, why: `planned: ${id}` };
  };
}

/** Schedules have a resolution of minutes, and every check asks: the answer is computed once per minute. */
function everyMinute<T>(ask: (now: number) => T): (now: number) => T {
  let known: { readonly minute: number; readonly answer: T } | undefined;
  return (now) => {
    const minute = Math.floor(now / MINUTE_MS);
    if (known?.minute !== minute) {
      known = { minute, answer: ask(now) };
    }
    return known.answer;
  };
}

function windowOf(row: Readonly<Record<string, unknown>>): MaintenanceWindow {
  const checks = row["checks"];
  return {
    id: String(row["id"]),
    checks:
      checks === null
        ? null
        : (JSON.parse(String(checks)) as readonly string[]),
    from: Number(row["begins_at"]),
    until: Number(row["ends_at"]),
    why: String(row["why"]),
  };
}
