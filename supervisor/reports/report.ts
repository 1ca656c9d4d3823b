import type { HealthReport } from "./health-report.ts";
import type { SpendReport } from "./spend-report.ts";

export type Report = SpendReport | HealthReport;
export type ReportKind = Report["kind"];

export const REPORT_FORMATS = ["text", "json", "csv", "html"] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

export const contentTypes: Readonly<Record<ReportFormat, string>> = {
  text: "text/plain; charset=utf-8",
  json: "application/json; charset=utf-8",
  csv: "text/csv; charset=utf-8",
  html: "text/html; charset=utf-8",
};
