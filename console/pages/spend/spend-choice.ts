import { z } from "zod";
import {
  choosePeriod,
  periodBetween,
  type Period,
} from "../../../supervisor/reports/period.ts";
import { COLUMN_KEYS, type ColumnKey } from "./spend-table.ts";

/** What the rows of the table are. */
export const DIMENSIONS = [
  "model",
  "key",
  "user",
  "team",
  "provider",
  "day",
] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export const PERIODS = ["today", "7d", "month", "last-month"] as const;

/** What is to be shown, as the address says it; whatever is not understood is left at its usual value. */
export interface SpendChoice {
  readonly period: (typeof PERIODS)[number];
  /** Two days win over the period. */
  readonly from: string;
  readonly until: string;
  readonly by: Dimension;
  readonly sort: ColumnKey;
  readonly order: "up" | "down";
  /** Only names that hold this. */
  readonly find: string;
  /** Ids of the rows that are drawn beside each other. */
  readonly pick: readonly string[];
  /** From 1. */
  readonly page: number;
}

/** More lines than that nobody tells apart. */
export const MOST_PICKS = 6;
const LONGEST_TEXT = 300;

const text = z.string().max(LONGEST_TEXT).catch("");
const asked = z.object({
  period: z.enum(PERIODS).catch("month"),
  from: text,
  until: text,
  by: z.enum(DIMENSIONS).catch("model"),
  sort: z.enum(COLUMN_KEYS).optional().catch(undefined),
  order: z.enum(["up", "down"]).catch("down"),
  find: text,
  pick: z
    .union([z.string().transform((id) => [id]), z.array(z.string())])
    .catch([])
    .transform((ids) => [...new Set(ids)].slice(0, MOST_PICKS)),
  page: z.coerce.number().int().min(1).max(1_000_000).catch(1),
});

export function readChoice(query: unknown): SpendChoice {
  const choice = asked.parse(query);
  return { ...choice, sort: choice.sort ?? usualSort(choice.by) };
}

/** The dearest first; days as they follow each other. */
export function usualSort(by: Dimension): ColumnKey {
  return by === "day" ? "name" : "spend";
}

/** The days that are asked for, seen from `today`. Throws a Failure for two days that are none. */
export function periodOf(
  { period, from, until }: SpendChoice,
  today: string,
): Period {
  if (from !== "" || until !== "") {
    return periodBetween(from || until, until || today, today);
  }
  switch (period) {
    case "today":
      return choosePeriod({ unit: "day", complete: false }, today);
    case "7d":
      return choosePeriod({ unit: "day", complete: false, since: "7d" }, today);
    case "month":
      return choosePeriod({ unit: "month", complete: false }, today);
    case "last-month":
      return choosePeriod({ unit: "month", complete: true }, today);
  }
}

/** What stands in an address or a form for a choice; what is as usual is left out. */
export function fieldsOf(
  choice: SpendChoice,
): readonly (readonly [string, string])[] {
  const { period, from, until, by, sort, order, find, pick, page } = choice;
  const fields: readonly (readonly [string, string, string])[] = [
    ["period", period, "month"],
    ["from", from, ""],
    ["until", until, ""],
    ["by", by, "model"],
    ["sort", sort, usualSort(by)],
    ["order", order, "down"],
    ["find", find, ""],
    ...pick.map((id) => ["pick", id, "\0"] as const),
    ["page", String(page), "1"],
  ];
  return fields
    .filter(([, value, usual]) => value !== usual)
    .map(([name, value]) => [name, value]);
}

/** The address of the page (or of its CSV) with some of a choice changed. */
export function linkTo(
  choice: SpendChoice,
  change: Partial<SpendChoice> = {},
  path = "/spend",
): string {
  const query = new URLSearchParams();
  for (const [name, value] of fieldsOf({ ...choice, ...change })) {
    query.append(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}
