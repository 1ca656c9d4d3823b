// Reads a report as JSON, writes it as HTML. A process of its own: what the chart library takes is given back when it ends.
import { text } from "node:stream/consumers";
import { renderReportPage } from "./render-page.ts";
import type { Report } from "./report.ts";

const report = JSON.parse(await text(process.stdin)) as Report;
process.stdout.write(renderReportPage(report));
