import type { HealthReport } from "./health-report.ts";
import type { Report } from "./report.ts";
import type { Payer } from "./payers.ts";
import type { SpendReport } from "./spend-report.ts";
import type { Sums } from "./sums.ts";

export type Value = string | number | null;

/** A report as rows for a spreadsheet: the first column says which table a row belongs to. */
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

/** Quoted where it must be. What a spreadsheet would take for a formula is made text: names come from strangers. */
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
    [
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
      "previous_spend",
      "share",
    ],
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
    ...series.steps.map(({ from, spend, requests }): Value[] => [
      series.unit,
      from,
      "",
      spend,
      null,
      requests,
    ]),
    ...report.corrections.map(({ at, name, spend }): Value[] => [
      "correction",
      at,
      name,
      spend,
    ]),
    ...report.budgets.map(({ kind, name, spend, budget, used }): Value[] => [
      `budget of a ${kind}`,
      name,
      `of ${budget}`,
      spend,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      used,
    ]),
  ];
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
  ];
}

function healthRows(report: HealthReport): readonly (readonly Value[])[] {
  const iso = (at: number) => new Date(at).toISOString();
  return [
    [
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
    ],
    ...report.checks.map((check): Value[] => [
      "check",
      check.name,
      check.availability,
      check.upMs,
      check.downMs,
      check.apartMs,
      check.incidents,
      check.p50,
      check.p95,
      check.p99,
    ]),
    ...report.incidents.map((incident): Value[] => [
      "incident",
      incident.check,
      null,
      null,
      incident.durationMs,
      null,
      null,
      null,
      null,
      null,
      iso(incident.from),
      incident.until === null ? "" : iso(incident.until),
      incident.reason,
    ]),
    ...report.restarts.map(({ at, service, act, reason }): Value[] => [
      act,
      service,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      iso(at),
      "",
      reason,
    ]),
    ...report.jobs.map(({ name, status, text, at }): Value[] => [
      "job",
      name,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      at === null ? "" : iso(at),
      "",
      `${status}: ${text}`,
    ]),
    ...report.certificates.map(({ check, daysLeft }): Value[] => [
      "certificate",
      check,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      null,
      "",
      "",
      `${daysLeft} days left`,
    ]),
  ];
}
