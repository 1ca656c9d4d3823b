import { renderCsv } from "./csv.ts";
import { renderReportPage } from "./render-page.ts";
import type { Report, ReportFormat } from "./report.ts";
import { renderText } from "./text.ts";

/** A report in one of its formats. */
export function renderReport(report: Report, format: ReportFormat): string {
  switch (format) {
    case "text":
      return renderText(report);
    case "json":
      return `${JSON.stringify(report, null, 1)}\n`;
    case "csv":
      return renderCsv(report);
    case "html":
      return renderReportPage(report);
  }
}
