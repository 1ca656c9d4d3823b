import type { Alarm } from "../alerts/alarm.ts";
import { sizeWords } from "../../core/size.ts";
import { slopeOf, type Point } from "../straight-line.ts";
import type { NotesState } from "./notes-state.ts";

/** How a vault grows, by the daily measurements of the last 30 days. */
export interface Growth {
  readonly days: number;
  /** Bytes a day; null before there are measurements of three days, or where they show no trend. */
  readonly perDay: number | null;
  /** Until the disk is full, if all vaults go on like this; null where they do not grow. */
  readonly fullInDays: number | null;
}

export const GROWTH_FINGERPRINT = "notes-growth";

const DAY_MS = 86_400_000;
const BASIS_DAYS = 30;
const LEAST_DAYS = 2;
const WARN_WITHIN_DAYS = 30;

/** The measurements with one more; one a day is enough. */
export function withMeasurement(
  sizes: readonly Point[],
  now: number,
  value: number,
): Point[] {
  return [...sizes, { at: now, value }].filter(
    ({ at }) => at <= now && at > now - BASIS_DAYS * DAY_MS,
  );
}

export function isMeasurementDue(
  sizes: readonly Point[],
  now: number,
): boolean {
  const last = sizes.at(-1)?.at;
  return last === undefined || Math.abs(now - last) >= DAY_MS;
}

export function growthOf(
  state: NotesState,
  vault: string,
  freeBytes: number,
): Growth {
  const { sizes } = state.vault(vault);
  const total = state
    .known()
    .reduce((sum, name) => sum + (perDay(state.vault(name).sizes) ?? 0), 0);
  return {
    days: Math.floor(spanOf(sizes) / DAY_MS),
    perDay: perDay(sizes),
    fullInDays: total <= 0 ? null : Math.floor(freeBytes / total),
  };
}

function spanOf(sizes: readonly Point[]): number {
  return (sizes.at(-1)?.at ?? 0) - (sizes[0]?.at ?? 0);
}

function perDay(sizes: readonly Point[]): number | null {
  if (spanOf(sizes) < LEAST_DAYS * DAY_MS) {
    return null;
  }
  const slope = slopeOf(sizes);
  return slope === undefined ? null : slope * DAY_MS;
}

/** Undefined unless the disk will be full within a month. */
export function growthAlarm(
  state: NotesState,
  freeBytes: number,
): Alarm | undefined {
  const [most] = state
    .known()
    .map((vault) => ({ vault, ...growthOf(state, vault, freeBytes) }))
    .toSorted((a, b) => (b.perDay ?? 0) - (a.perDay ?? 0));
  if (most?.fullInDays == null || most.fullInDays >= WARN_WITHIN_DAYS) {
    return undefined;
  }
  return {
    fingerprint: GROWTH_FINGERPRINT,
    level: "warning",
    subject: "notes",
    text: `at the present growth of the vaults the disk is full in ${dayWords(most.fullInDays)}: ${sizeWords(freeBytes)} are free, and vault ${most.vault} grows most, by ${sizeWords(Math.round(most.perDay ?? 0))} a day.`,
    command: `hearth notes space ${most.vault}`,
  };
}

/** "It grows by 2.1 MB a day; the disk is full in 40 days …", for pages and the command line. */
export function growthWords({ days, perDay, fullInDays }: Growth): string {
  if (days < LEAST_DAYS) {
    return "Its growth is known after two days of measurements.";
  }
  const grows =
    perDay === null || Math.abs(perDay) < 1
      ? "It does not grow steadily"
      : `It ${perDay > 0 ? "grows" : "shrinks"} by ${sizeWords(Math.round(Math.abs(perDay)))} a day (measured for ${dayWords(days)})`;
  const full =
    fullInDays === null
      ? ""
      : `; with the growth of all vaults the disk is full in ${fullInDays > 3650 ? "more than ten years" : dayWords(fullInDays)}`;
  return `${grows}${full}.`;
}

function dayWords(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}
