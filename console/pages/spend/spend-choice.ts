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

/** The view that an address describes; invalid parameters take their defaults. */
export interface SpendChoice {
  readonly period: (typeof PERIODS)[number];
  /** Two days take precedence over the period. */
  readonly from: string;
  readonly until: string;
  readonly by: Dimension;
  readonly sort: ColumnKey;
  readonly order: "up" | "down";
  /** Filter on names. */
  readonly find: string;
  /** Ids of the selected rows. */
  readonly pick: readonly string[];
  /** From 1. */
  readonly page: number;
}

/** More lines could not be distinguished. */
export const MAX_PICKS = 6;
const MAX_TEXT_LENGTH = 300;

const text = z.string().max(MAX_TEXT_LENGTH).catch("");
const querySchema = z.object({
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
    .transform((ids) => [...new Set(ids)].slice(0, MAX_PICKS)),
  page: z.coerce.number().int().min(1).max(1_000_000).catch(1),
});

export function readChoice(query: unknown): SpendChoice {
  const choice = querySchema.parse(query);
  return { ...choice, sort: choice.sort ?? defaultSort(choice.by) };
}

/** The most expensive first; days in their order. */
export function defaultSort(by: Dimension): ColumnKey {
  return by === "day" ? "name" : "spend";
}

/** The selected period as of `today`. Throws a Failure for invalid days. */
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

/** The parameters of a choice for an address or a form; defaults are left out. */
export function fieldsOf(
  choice: SpendChoice,
): readonly (readonly [string, string])[] {
  const { period, from, until, by, sort, order, find, pick, page } = choice;
  const fields: readonly (readonly [string, string, string])[] = [
    ["period", period, "month"],
    ["from", from, ""],
    ["until", until, ""],
    ["by", by, "model"],
    ["sort", sort, defaultSort(by)],
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
