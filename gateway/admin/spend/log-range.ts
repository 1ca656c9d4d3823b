import { z } from "zod";
import { invalidParam } from "../../http/errors.ts";
import type { Conditions } from "../paging.ts";
import { queryDay } from "../kinds/values.ts";
import { endOfDay, startOfDay } from "./log-filters.ts";

const DAY = /^\d{4}-\d\d-\d\d$/;
const SECOND = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,6})?Z?$/;

/** A day of a query, or a time in UTC: `2026-11-21 12:00:00`. */
export const queryMoment = z
  .string()
  .transform((text) => text.trim())
  .refine(
    isMoment,
    "must be a day such as 2026-11-21, or a time in UTC such as 2026-11-21 12:00:00",
  );

function isMoment(text: string): boolean {
  const day = DAY.test(text) ? text : SECOND.exec(text)?.[1];
  return (
    day !== undefined &&
    queryDay.safeParse(day).success &&
    (day === text || !Number.isNaN(timeOf(text)))
  );
}

/**
 * Keeps the rows whose time, by default of `spend_log l`, is in a range, whose end is included to its last second, or to the end of a day
 * in the time zone. (LiteLLM ends a range at the first moment of its last day.) Throws 400 for a reversed range.
 */
export function keepRange(
  filter: Conditions,
  range: {
    readonly start_date?: string | undefined;
    readonly end_date?: string | undefined;
  },
  timeZone: string,
  column = "l.started_at",
): void {
  const { start_date: start, end_date: end } = range;
  const from = start === undefined ? undefined : startOf(start, timeZone);
  const to = end === undefined ? undefined : endOf(end, timeZone);
  if (from !== undefined && to !== undefined && from >= to) {
    throw invalidParam("end_date", "must be on or after `start_date`.");
  }
  if (from !== undefined) {
    filter.and(`${column} >= ?`, from);
  }
  if (to !== undefined) {
    filter.and(`${column} < ?`, to);
  }
}

function startOf(text: string, timeZone: string): string {
  return DAY.test(text) ? startOfDay(text, timeZone) : iso(timeOf(text));
}

function endOf(text: string, timeZone: string): string {
  return DAY.test(text)
    ? endOfDay(text, timeZone)
    : iso(secondAfter(timeOf(text)));
}

function timeOf(text: string): number {
  return Date.parse(`${text.replace(" ", "T").replace(/Z$/, "")}Z`);
}

function secondAfter(at: number): number {
  return Math.floor(at / 1_000) * 1_000 + 1_000;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
