import type { HealthReport } from "./health-report.ts";
import type { Report } from "./report.ts";
import type { Payer } from "./payers.ts";
import type { SpendReport } from "./spend-report.ts";
import type { Sums } from "./sums.ts";

export type Value = string | number | null;

/** A report as rows for a spreadsheet; the first column names the table of a row. */
export function renderCsv(report: Report): string {
  const rows = report.kind === "spend" ? spendRows(report) : healthRows(report);
  const width = rows[0]?.length ?? 0;
  return csvOf(
    rows.map((row) => [...row, ...Array<null>(width - row.length).fill(null)]),
  );
}

export function csvOf(rows: readonly (readonly Value[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** Quoted if necessary. Formulas become text: names may come from strangers. */
function field(value: Value): string {
  if (value === null) {
    return "";
  }
  if (typeof value === "number") {
    return String(value);
  }
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const SPEND_COLUMNS = [
  "table",
  "id",
  "name",
  "spend",
  "saved",
  "requests",
  "failed",
  "interrupted",
  "cache_hits",
  "unpriced",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "previous_spend",
  "share",
] as const;

function spendRows(report: SpendReport): readonly (readonly Value[])[] {
  const { period, series } = report;
  const payers = (table: string, all: readonly Payer[]) =>
    all.map((payer): Value[] => [
      table,
      payer.id,
      payer.name,
      ...sumsOf(payer),
      payer.previous,
      payer.share,
    ]);
  return [
    SPEND_COLUMNS,
    [
      "total",
      `${period.from} to ${period.until}`,
      period.label,
      ...sumsOf(report.totals),
      report.previous.spend,
      1,
    ],
    ...payers("user", report.users),
    ...payers("key", report.keys),
    ...payers("team", report.teams),
    ...payers("model", report.models),
    ...payers("provider", report.providers),
    ...series.steps.map(({ from, spend, requests }) =>
      rowOf(SPEND_COLUMNS, {
        table: series.unit,
        id: from,
        name: "",
        spend,
        requests,
      }),
    ),
    ...report.corrections.map(({ at, name, spend }) =>
      rowOf(SPEND_COLUMNS, { table: "correction", id: at, name, spend }),
    ),
    ...report.budgets.map(({ kind, name, spend, budget, used }) =>
      rowOf(SPEND_COLUMNS, {
        table: `budget of a ${kind}`,
        id: name,
        name: `of ${budget}`,
        spend,
        share: used,
      }),
    ),
  ];
}

function rowOf<Column extends string>(
  columns: readonly Column[],
  values: Readonly<Partial<Record<Column, Value>>>,
): readonly Value[] {
  return columns.map((column) => values[column] ?? null);
}

function sumsOf(sums: Sums): readonly number[] {
  return [
    sums.spend,
    sums.saved,
    sums.requests,
    sums.failed,
    sums.interrupted,
    sums.cacheHits,
    sums.unpriced,
    sums.promptTokens,
    sums.completionTokens,
    sums.cachedTokens,
  ];
}

const HEALTH_COLUMNS = [
  "table",
  "name",
  "availability_percent",
  "up_ms",
  "down_ms",
  "apart_ms",
  "incidents",
  "p50_ms",
  "p95_ms",
  "p99_ms",
  "from",
  "until",
  "text",
  "times",
] as const;

function healthRows(report: HealthReport): readonly (readonly Value[])[] {
  const iso = (at: number | null) =>
    at === null ? "" : new Date(at).toISOString();
  const row = (
    values: Partial<Record<(typeof HEALTH_COLUMNS)[number], Value>>,
  ) => rowOf(HEALTH_COLUMNS, values);
  return [
    HEALTH_COLUMNS,
    ...report.checks.map((check) =>
      row({
        table: "check",
        name: check.name,
        availability_percent: check.availability,
        up_ms: check.upMs,
        down_ms: check.downMs,
        apart_ms: check.apartMs,
        incidents: check.incidents,
        p50_ms: check.p50,
        p95_ms: check.p95,
        p99_ms: check.p99,
      }),
    ),
    ...report.incidents.map(({ check, downMs, times, from, until, reason }) =>
      row({
        table: "incident",
        name: check,
        down_ms: downMs,
        from: iso(from),
        until: iso(until),
        text: reason,
        times,
      }),
    ),
    ...report.restarts.map(({ at, service, act, reason }) =>
      row({ table: act, name: service, from: iso(at), text: reason }),
    ),
    ...report.jobs.map(({ name, status, text, at }) =>
      row({
        table: "job",
        name,
        from: iso(at),
        text: `${status}: ${text}`,
      }),
    ),
    ...report.certificates.map(({ check, daysLeft }) =>
      row({
        table: "certificate",
        name: check,
        text: `${daysLeft} days left`,
      }),
    ),
  ];
}
