import { DAY_MS } from "../../core/duration.ts";
import type { KeepRule } from "../jobs/config.ts";
import { momentOf, rankBackups } from "./manifest.ts";
import { dayIn } from "../../core/words.ts";

const ALWAYS_KEPT_MS = 2 * DAY_MS;

/**
 * Which backups are kept: the newest of each of the last `daily` days, `weekly` weeks (from Monday) and `monthly` months of
 * the zone that have one. Days without a backup do not count, so nothing is deleted when backups stop. Backups at most two days
 * older than the newest are always kept: one taken right after a mishap must not displace the last good one. So are those with
 * a date in the future, which a wrong clock gave them: their age is unknown, and they displace no other.
 */
export function backupsToKeep(
  names: readonly string[],
  rule: KeepRule,
  timeZone: string,
  now: number,
): ReadonlySet<string> {
  const newestFirst = rankBackups(names, now).map((name) => ({
    name,
    at: momentOf(name) ?? 0,
  }));
  const newest = newestFirst[0]?.at ?? 0;
  const recent = newestFirst.filter(({ at }) => newest - at <= ALWAYS_KEPT_MS);
  return namesOf([
    ...recent,
    ...onePerPeriod(newestFirst, rule, timeZone, (found) => found),
  ]);
}

/** A copy of a backup of the other host, and when it was complete here. */
interface ReceivedCopy {
  readonly name: string;
  readonly at: number;
}

/**
 * Which copies of the other host's backups are kept: as with backups, but by the clock of this host, and the first of each
 * period. A compromised sender can neither date copies so that good ones expire, nor displace good ones by sending more: it adds
 * at most one per day, week and month. Copies of the last two days are always kept.
 */
export function copiesToKeep(
  copies: readonly ReceivedCopy[],
  rule: KeepRule,
  timeZone: string,
  now: number,
): ReadonlySet<string> {
  const newestFirst = copies.toSorted((a, b) => b.at - a.at);
  const recent = newestFirst.filter(({ at }) => now - at <= ALWAYS_KEPT_MS);
  return namesOf([
    ...newestFirst.slice(0, 1),
    ...recent,
    ...onePerPeriod(newestFirst, rule, timeZone, (_found, older) => older),
  ]);
}

/** One of each of the newest days, weeks and months: `choose` selects the current one or an older one. */
function onePerPeriod<Entry extends { readonly at: number }>(
  newestFirst: readonly Entry[],
  rule: KeepRule,
  timeZone: string,
  choose: (found: Entry, older: Entry) => Entry,
): readonly Entry[] {
  const newestOf = (count: number, periodOf: (day: string) => string) => {
    const periods = new Map<string, Entry>();
    for (const entry of newestFirst) {
      const period = periodOf(dayIn(timeZone, entry.at));
      const found = periods.get(period);
      if (found === undefined && periods.size === count) {
        break;
      }
      periods.set(period, found === undefined ? entry : choose(found, entry));
    }
    return [...periods.values()];
  };
  return [
    ...newestOf(rule.daily, (day) => day),
    ...newestOf(rule.weekly, mondayOf),
    ...newestOf(rule.monthly, (day) => day.slice(0, "2026-11".length)),
  ];
}

function namesOf(
  entries: readonly { readonly name: string }[],
): ReadonlySet<string> {
  return new Set(entries.map(({ name }) => name));
}

function mondayOf(day: string): string {
  const at = Date.parse(`${day}T00:00:00Z`);
  const sinceMonday = (new Date(at).getUTCDay() + 6) % 7;
  return new Date(at - sinceMonday * DAY_MS).toISOString().slice(0, 10);
}
