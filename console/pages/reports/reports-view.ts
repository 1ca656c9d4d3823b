import { sizeWords } from "../../../core/size.ts";
import type { JobView } from "../../../supervisor/jobs/runner.ts";
import type {
  ReportFile,
  WrittenReport,
} from "../../../supervisor/reports/report-files.ts";
import {
  daysBetween,
  endOfMonth,
  inFull,
  monthName,
} from "../../../supervisor/reports/period.ts";
import type { ReportKind } from "../../../supervisor/reports/report.ts";
import type { Field } from "../field.ts";
import { lookOfRun } from "../jobs/run-words.ts";
import type { Look } from "../../../core/shapes.ts";
import { ahead, counted, momentFrom } from "../../../core/words.ts";

/** The jobs that write scheduled reports. */
export const REPORT_JOB_NAMES = ["spend-report", "health-report"] as const;

const kindNames: Readonly<Record<ReportKind, string>> = {
  spend: "Spend",
  health: "Health",
};

/** The fields of the form that creates a report. */
export const REPORT_FORM: readonly Field[] = [
  {
    name: "kind",
    kind: "choice",
    label: "Report",
    values: [
      ["spend", "Spend"],
      ["health", "Health"],
    ],
  },
  {
    name: "period",
    kind: "choice",
    label: "Period",
    values: [
      ["month", "this month so far"],
      ["last-month", "last month"],
      ["week", "this week so far"],
      ["last-week", "last week"],
      ["day", "today so far"],
      ["last-day", "yesterday"],
      ["since", "since the date below"],
    ],
  },
  {
    name: "since",
    kind: "day",
    label: "Since",
    note: "Only for the period “since the date below”.",
  },
  {
    name: "format",
    kind: "choice",
    label: "Format",
    values: [
      ["html", "web page"],
      ["text", "text"],
      ["csv", "CSV, for spreadsheets"],
      ["json", "JSON, for programs"],
    ],
  },
];

interface ReportsFacts {
  /** Newest first. */
  readonly reports: readonly WrittenReport[];
  /** Number of newer reports on other pages. */
  readonly from: number;
  readonly jobs: readonly JobView[];
  readonly fields: readonly Field[];
  readonly timeZone: string;
  readonly now: number;
}

const REPORTS_ON_PAGE = 50;

export function viewReports(facts: ReportsFacts) {
  const { reports, from, jobs, timeZone, now } = facts;
  const shown = reports.slice(from, from + REPORTS_ON_PAGE);
  const failed = jobs.find(({ last }) => last?.status === "failed");
  const look: Look = failed === undefined ? "none" : "warn";
  return {
    title: titleOf(reports.length, failed),
    look,
    makers: jobs.map(({ name, last, nextAt }) => ({
      name,
      look: lookOfRun(last),
      text: last?.text ?? "Has not run yet.",
      next:
        nextAt === null ? "On demand." : `Next report ${ahead(nextAt, now)}.`,
    })),
    fields: facts.fields,
    reports: shown.map((report) => ({
      name: kindNames[report.kind],
      days: daysOf(report),
      madeAt: momentFrom(now, report.madeAt, timeZone),
      page: report.files.find(({ format }) => format === "html")?.name ?? null,
      files: report.files.toSorted(byName).map(({ name, bytes }) => ({
        name,
        ending: name.replace(/^.*\./, ""),
        size: sizeWords(bytes),
      })),
    })),
    newer: from === 0 ? null : Math.max(0, from - REPORTS_ON_PAGE),
    older:
      from + REPORTS_ON_PAGE < reports.length ? from + REPORTS_ON_PAGE : null,
  };
}

function titleOf(count: number, failed: JobView | undefined): string {
  if (failed !== undefined) {
    return `${failed.name} failed.`;
  }
  if (count === 0) {
    return "No reports yet.";
  }
  return `${counted(count, "report")}.`;
}

/** "October 2026", "16 Nov 2026", "16 Nov 2026 to 22 Nov 2026". */
function daysOf({ from, until }: WrittenReport): string {
  if (from === until) {
    return inFull(from);
  }
  const wholeMonth = from.endsWith("-01") && until === endOfMonth(from);
  if (wholeMonth) {
    return monthName(from, true);
  }
  const days = daysBetween(from, until) + 1;
  return `${inFull(from)} to ${inFull(until)}, ${days} days`;
}

function byName(one: ReportFile, other: ReportFile): number {
  return one.name < other.name ? -1 : 1;
}
