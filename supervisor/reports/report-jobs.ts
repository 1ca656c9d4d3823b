import { mkdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { writeDurably } from "../../core/durable-file.ts";
import { readVariable } from "../../core/environment.ts";
import { scheduleOf } from "../jobs/config.ts";
import type { Job, JobContext, JobOutcome } from "../jobs/job.ts";
import type { Context } from "../context.ts";
import { healthVerdict, spendVerdict } from "./findings.ts";
import { renderReport } from "./render.ts";
import {
  REPORT_FORMATS,
  type ReportFormat,
  type ReportKind,
} from "./report.ts";
import type { MakeReport } from "./reporting.ts";

const endings: Readonly<Record<ReportFormat, string>> = {
  text: "txt",
  json: "json",
  csv: "csv",
  html: "html",
};

/** Scheduled reports: of the last complete day, week or month, in all four formats. */
export function reportJobs(
  { home, env, config }: Context,
  makeReport: MakeReport,
): readonly Job[] {
  const { spend_report: spend, health_report: health } = config.jobs;
  const own = readVariable("SUPERVISOR_DATABASE_URL", env) !== undefined;
  const write = (kind: ReportKind, settings: typeof spend) => {
    const directory = isAbsolute(settings.to)
      ? settings.to
      : join(home.root, settings.to);
    return (context: JobContext) =>
      writeReport(makeReport, kind, settings.period, directory, context);
  };
  return [
    {
      name: "spend-report",
      description: "Write the spend report.",
      schedule: { ...scheduleOf(spend), cron: own ? spend.cron : null },
      run: write("spend", spend),
    },
    {
      name: "health-report",
      description: "Write the health report.",
      schedule: scheduleOf(health),
      run: write("health", health),
    },
  ];
}

async function writeReport(
  makeReport: MakeReport,
  kind: ReportKind,
  unit: "day" | "week" | "month",
  directory: string,
  { now, signal, progress }: JobContext,
): Promise<JobOutcome> {
  progress("reading", 0);
  const choice = { unit, complete: true };
  const report = await makeReport(kind, choice, now(), signal);
  const { from, until } = report.period;
  const name = `${kind}-${from}${from === until ? "" : `-to-${until}`}`;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [at, format] of REPORT_FORMATS.entries()) {
    progress(`writing ${name}.${endings[format]}`, (at + 1) / 5);
    const text = renderReport(report, format);
    writeDurably(join(directory, `${name}.${endings[format]}`), text);
  }
  const verdict =
    report.kind === "spend" ? spendVerdict(report) : healthVerdict(report);
  return {
    status: "done",
    summary: verdict,
    details: { report: `/reports/${name}.html`, from, until },
  };
}
