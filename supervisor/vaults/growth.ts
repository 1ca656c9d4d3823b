import { DAY_MS } from "../../core/duration.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { sizeWords } from "../../core/size.ts";
import { slopeOf, type Point } from "../linear-regression.ts";
import type { NotesState } from "./notes-state.ts";

/** Growth of a vault, from the daily measurements of the last 30 days. */
export interface Growth {
  readonly days: number;
  /** Bytes per day; null with less than two days of measurements or without a trend. */
  readonly perDay: number | null;
  /** Days until the disk is full at the current growth of all vaults; null if they do not grow. */
  readonly fullInDays: number | null;
}

export const GROWTH_FINGERPRINT = "notes-growth";

const BASIS_DAYS = 30;
const MIN_DAYS = 2;
const WARN_WITHIN_DAYS = 30;

/** The measurements of the last 30 days with a new one added. */
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
  if (spanOf(sizes) < MIN_DAYS * DAY_MS) {
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
  const [fastest] = state
    .known()
    .map((vault) => ({ vault, ...growthOf(state, vault, freeBytes) }))
    .toSorted((a, b) => (b.perDay ?? 0) - (a.perDay ?? 0));
  if (fastest?.fullInDays == null || fastest.fullInDays >= WARN_WITHIN_DAYS) {
    return undefined;
  }
  return {
    fingerprint: GROWTH_FINGERPRINT,
    level: "warning",
    subject: "notes",
    text: `the disk will be full in ${dayWords(fastest.fullInDays)} at the current growth of the vaults: ${sizeWords(freeBytes)} free; vault ${fastest.vault} grows fastest, by ${sizeWords(Math.round(fastest.perDay ?? 0))} per day.`,
    command: `hearth notes space ${fastest.vault}`,
  };
}

/** "Growing by 2.1 MB per day …; disk full in 40 days …", for pages and the CLI. */
export function growthWords({ days, perDay, fullInDays }: Growth): string {
  if (days < MIN_DAYS) {
    return "Growth unknown: needs two days of measurements.";
  }
  const grows =
    perDay === null || Math.abs(perDay) < 1
      ? "No steady growth"
      : `${perDay > 0 ? "Growing" : "Shrinking"} by ${sizeWords(Math.round(Math.abs(perDay)))} per day (measured over ${dayWords(days)})`;
  const full =
    fullInDays === null
      ? ""
      : `; disk full in ${fullInDays > 3650 ? "more than ten years" : dayWords(fullInDays)} at the growth of all vaults`;
  return `${grows}${full}.`;
}

function dayWords(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}
