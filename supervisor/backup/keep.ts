import type { KeepRule } from "../jobs/config.ts";
import { momentOf } from "./manifest.ts";

const alwaysKeptMs = 2 * 86_400_000;

/**
 * Which backups stay: the newest of each of the last `daily` days, `weekly` weeks (from Monday) and `monthly` months of the
 * zone that have one. Days without a backup do not count, so nothing is lost when backups stop. What is at most two days older
 * than the newest stays in any case: a backup taken in a hurry after a mishap must not push out the last good one.
 */
export function backupsToKeep(
  names: readonly string[],
  rule: KeepRule,
  timeZone: string,
): ReadonlySet<string> {
  const newestFirst = names.toSorted().toReversed();
  const newest = momentOf(newestFirst[0] ?? "") ?? 0;
  const kept = new Set(
    names.filter((name) => newest - (momentOf(name) ?? 0) <= alwaysKeptMs),
  );
  const keepNewestOf = (count: number, periodOf: (day: string) => string) => {
    const periods = new Set<string>();
    for (const name of newestFirst) {
      const period = periodOf(dayOf(name, timeZone));
      if (periods.has(period)) continue;
      if (periods.size === count) return;
      periods.add(period);
      kept.add(name);
    }
  };
  keepNewestOf(rule.daily, (day) => day);
  keepNewestOf(rule.weekly, mondayOf);
  keepNewestOf(rule.monthly, (day) => day.slice(0, "2026-11".length));
  return kept;
}

/** `2026-11-21` in the zone. */
function dayOf(name: string, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(
    momentOf(name) ?? 0,
  );
}

function mondayOf(day: string): string {
  const at = Date.parse(`${day}T00:00:00Z`);
  const sinceMonday = (new Date(at).getUTCDay() + 6) % 7;
  return new Date(at - sinceMonday * 86_400_000).toISOString().slice(0, 10);
}
