import { lastedInWords } from "../checks/incident-words.ts";
import { inWords } from "../../core/duration.ts";
import { grouped, moment, money, percent } from "../../core/words.ts";
import {
  healthFindings,
  healthVerdict,
  spendFindings,
  spendVerdict,
  type Finding,
} from "./findings.ts";
import type { HealthReport } from "./health-report.ts";
import { inFull } from "./period.ts";
import type { Report } from "./report.ts";
import type { Payer } from "./payers.ts";
import type { SpendReport } from "./spend-report.ts";

const MAX_ROWS = 20;

/** A report for a terminal or a mail: verdict, findings, tables. Plain text without colours. */
export function renderText(report: Report): string {
  const lines =
    report.kind === "spend" ? spendLines(report) : healthLines(report);
  // Names may come from strangers: control characters must not reach a terminal.
  return `${lines.map((line) => line.replace(CONTROLS, "?").trimEnd()).join("\n")}\n`;
}

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

function spendLines(report: SpendReport): readonly string[] {
  const { totals, forecast, period, corrections } = report;
  return [
    spendVerdict(report),
    ...findingLines(spendFindings(report)),
    "",
    ...table(
      [],
      [
        ["spend", money(totals.spend)],
        [period.previous.label, money(report.previous.spend)],
        ...(forecast === null
          ? []
          : [[`forecast to ${inFull(forecast.until)}`, money(forecast.spend)]]),
        ["calls", grouped(totals.requests)],
        ["failed", grouped(totals.failed)],
        ["interrupted", grouped(totals.interrupted)],
        ["from the cache", grouped(totals.cacheHits)],
        ["saved by caches", money(totals.saved)],
        ["input read from caches of providers", grouped(totals.cachedTokens)],
        ["without a price", grouped(totals.unpriced)],
      ],
    ),
    ...payerLines("by user", report.users),
    ...payerLines("by key", report.keys),
    ...payerLines("by team", report.teams),
    ...payerLines("by alias", report.models),
    ...payerLines("by provider", report.providers),
    ...section(
      "budgets",
      table(
        ["", "used", "spend", "budget"],
        report.budgets
          .slice(0, MAX_ROWS)
          .map(({ kind, name, spend, budget, used }) => [
            `${kind} ${name}`,
            used === null ? "—" : percent(used),
            money(spend),
            money(budget),
          ]),
      ),
    ),
    ...section(
      "corrections by an admin",
      table(
        ["", "spend", ""],
        corrections
          .slice(0, MAX_ROWS)
          .map(({ at, name, spend }) => [name, money(spend), at]),
      ),
    ),
  ];
}

function payerLines(
  heading: string,
  payers: readonly Payer[],
): readonly string[] {
  if (payers.every(({ id }) => id === "")) {
    return [];
  }
  const rows = payers
    .slice(0, MAX_ROWS)
    .map(({ name, spend, share, previous, requests, failed }) => [
      name,
      money(spend),
      percent(share),
      money(previous),
      grouped(requests),
      grouped(failed),
    ]);
  const more = payers.length - MAX_ROWS;
  return section(heading, [
    ...table(["", "spend", "share", "before", "calls", "failed"], rows),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]);
}

function healthLines(report: HealthReport): readonly string[] {
  return [
    healthVerdict(report),
    ...findingLines(healthFindings(report)),
    ...section("checks", checkRows(report)),
    ...section("incidents", incidentRows(report)),
    ...section("restarts", restartRows(report)),
    ...section(
      "notes store",
      table(
        ["", "measured", "typical"],
        report.notesStore.map(({ name, seen, typical }) => [
          name,
          seen,
          typical,
        ]),
      ),
    ),
    ...section("jobs", jobRows(report)),
    ...section(
      "certificates",
      table(
        ["", "days left"],
        report.certificates.map(({ check, daysLeft }) => [
          check,
          String(daysLeft),
        ]),
      ),
    ),
  ];
}

function checkRows({ checks }: HealthReport): readonly string[] {
  return table(
    ["", "available", "down", "incidents", "p50", "p95", "p99"],
    checks.map((check) => [
      check.name,
      check.availability === null ? "—" : percent(check.availability / 100),
      check.downMs === 0 ? "0" : inWords(check.downMs),
      String(check.incidents),
      ...[check.p50, check.p95, check.p99].map((ms) =>
        ms === null ? "—" : `${ms} ms`,
      ),
    ]),
  );
}

function incidentRows({
  incidents,
  timeZone,
}: HealthReport): readonly string[] {
  return table(
    ["", "from", "duration", ""],
    incidents
      .slice(0, MAX_ROWS)
      .map((incident) => [
        incident.check,
        moment(incident.from, timeZone),
        lastedInWords(incident),
        incident.reason ?? "",
      ]),
  );
}

function restartRows({ restarts, timeZone }: HealthReport): readonly string[] {
  return table(
    ["", "at", "", ""],
    restarts
      .slice(0, MAX_ROWS)
      .map(({ at, service, act, reason }) => [
        service,
        moment(at, timeZone),
        act,
        reason,
      ]),
  );
}

function jobRows({ jobs, timeZone }: HealthReport): readonly string[] {
  return table(
    ["", "last", ""],
    jobs.map(({ name, status, text, at }) => [
      name,
      at === null ? status : `${status}, ${moment(at, timeZone)}`,
      text,
    ]),
  );
}

function findingLines(findings: readonly Finding[]): readonly string[] {
  if (findings.length === 0) {
    return ["Nothing needs attention."];
  }
  return [
    "",
    ...findings.flatMap(({ level, text, command }) => [
      `${level === "down" ? "✕" : "▲"} ${text}`,
      `  ${command}`,
    ]),
  ];
}

function section(heading: string, lines: readonly string[]): readonly string[] {
  return lines.length < 2 ? [] : ["", heading.toUpperCase(), ...lines];
}

/** Columns separated by two spaces; figures aligned right, words and the last column left. */
function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  if (rows.length === 0) {
    return [];
  }
  const all = head.length === 0 ? rows : [head, ...rows];
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...all.map((row) => [...(row[column] ?? "")].length)),
  );
  const isFigure = widths.map((_, column) =>
    rows.every((row) => /^(—|[-$\d][^a-zA-Z]*( ms)?)$/.test(row[column] ?? "")),
  );
  return all.map(
    (row) =>
      `  ${row
        .map((cell, column) => {
          const space = " ".repeat(
            Math.max(0, (widths[column] ?? 0) - [...cell].length),
          );
          return isFigure[column] === true ? space + cell : cell + space;
        })
        .join("  ")}`,
  );
}
