import { inWords } from "../../core/duration.ts";
import { grouped, money, percent } from "../../core/words.ts";
import type { HealthReport } from "./health-report.ts";
import type { Budget } from "./budgets.ts";
import type { Payer } from "./payers.ts";
import { inFull, type Period } from "./period.ts";
import type { SpendReport } from "./spend-report.ts";

/** A finding that needs attention, with the next step. */
export interface Finding {
  readonly level: "down" | "warning";
  readonly text: string;
  readonly command: string;
}

const BUDGET_WARNING_FROM = 0.8;
const FAILURE_WARNING_FROM = 0.05;
const MIN_CALLS = 20;
const EXPIRY_WARNING_DAYS = 14;

/** "12 % more than October", "as much as in October" */
export function changeWords(change: number, than: string): string {
  if (Math.abs(change) < 0.0005) {
    return `as much as ${than}`;
  }
  if (change >= 10) {
    return `${grouped(change + 1)} times as much as ${than}`;
  }
  return `${percent(Math.abs(change))} ${change > 0 ? "more" : "less"} than ${than}`;
}

/** "in November 2026, so far", "on 21 Nov 2026" */
function within({ from, label }: Period): string {
  return `${label.startsWith(inFull(from)) ? "on" : "in"} ${label}`;
}

/** The summary of a spend report in one sentence. */
export function spendVerdict({
  totals,
  period,
  change,
}: Pick<SpendReport, "totals" | "period" | "change">): string {
  if (totals.requests === 0) {
    return `No calls ${within(period)}.`;
  }
  const compared =
    change === null ? "" : `: ${changeWords(change, period.previous.label)}`;
  return `${money(totals.spend)} ${within(period)}${compared}.`;
}

export function spendFindings(report: SpendReport): readonly Finding[] {
  return [
    ...report.budgets.flatMap(budgetFinding).slice(0, 10),
    ...callFindings(report),
  ];
}

/** Problems of the calls themselves. */
export function callFindings({
  totals,
  models,
}: Pick<SpendReport, "totals" | "models">): readonly Finding[] {
  const findings: Finding[] = [];
  if (totals.unpriced > 0) {
    findings.push({
      level: "warning",
      text: `${totals.unpriced === 1 ? "1 call has no price and counts" : `${grouped(totals.unpriced)} calls have no price and count`} as free${namesOf(models, ({ unpriced }) => unpriced)}.`,
      command: "add input_cost_per_token to config/gateway.local.yaml",
    });
  }
  if (
    totals.requests >= MIN_CALLS &&
    totals.failed > totals.requests * FAILURE_WARNING_FROM
  ) {
    findings.push({
      level: "warning",
      text: `${percent(totals.failed / totals.requests)} of all calls failed${namesOf(models, ({ failed }) => failed)}.`,
      command: "hearth logs gateway",
    });
  }
  return findings;
}

function budgetFinding({
  kind,
  name,
  spend,
  budget,
  used,
  resetsAt,
}: Budget): Finding[] {
  if (used === null || used < BUDGET_WARNING_FROM) {
    return [];
  }
  return [
    {
      level: used >= 1 ? "down" : "warning",
      text: `${kind} ${name} has used ${percent(used)} of its budget (${money(spend)} of ${money(budget)}).`,
      command: `${raiseOf(kind)}${resetsAt === null ? "" : ", or wait for the next reset"}`,
    },
  ];
}

/** Where a budget is raised. */
function raiseOf(kind: string): string {
  if (kind === "gateway") {
    return "raise proxy_settings.max_budget in config/gateway.local.yaml";
  }
  return `raise it on page ${pageOf(kind)} of the console`;
}

function pageOf(kind: string): string {
  if (kind === "user") {
    return "Users";
  }
  return kind === "team" || kind === "member" ? "Teams" : "Keys";
}

function namesOf(
  payers: readonly Payer[],
  count: (payer: Payer) => number,
): string {
  const most = payers
    .filter((payer) => count(payer) > 0)
    .toSorted((a, b) => count(b) - count(a));
  const named = most
    .slice(0, 3)
    .map((payer) => `${payer.name} (${grouped(count(payer))})`);
  if (named.length === 0) {
    return "";
  }
  return `: ${named.join(", ")}${most.length > 3 ? ` and ${most.length - 3} more` : ""}`;
}

/** The summary of a health report in one sentence. */
export function healthVerdict(report: HealthReport): string {
  const { checks, incidents, attention, period } = report;
  if (checks.length === 0) {
    return `No checks ${within(period)}.`;
  }
  const down = attention.filter(({ level }) => level === "down").length;
  if (down > 0) {
    return `${down === 1 ? "One thing is" : `${down} things are`} down now.`;
  }
  if (incidents.length === 0) {
    return `All was well ${within(period)}.`;
  }
  const longest = Math.max(...incidents.map(({ durationMs }) => durationMs));
  return `${incidents.length === 1 ? "One incident" : `${incidents.length} incidents`} ${within(period)}; the longest took ${inWords(longest)}.`;
}

export function healthFindings(report: HealthReport): readonly Finding[] {
  return [
    ...report.attention.filter(({ level }) => level === "down"),
    ...report.attention.filter(({ level }) => level === "warning"),
    ...report.certificates
      .filter(({ daysLeft }) => daysLeft < EXPIRY_WARNING_DAYS)
      .map(({ check, daysLeft }) => ({
        level: "warning" as const,
        text: `the certificate of ${check} expires in ${daysLeft} days.`,
        command: `hearth check ${check}`,
      })),
    ...report.notesStore
      .filter(({ within }) => !within)
      .map(({ name, seen, typical }) => ({
        level: "warning" as const,
        text: `the notes store uses more than is typical: ${name}: ${seen}, typical is ${typical}.`,
        command: name === "disk" ? "hearth compact" : "hearth logs notes",
      })),
  ];
}
