import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "../core/execute.ts";
import {
  REPORT_FORMATS,
  type ReportKind,
} from "../supervisor/reports/report.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print, printPart } from "./terminal.ts";
import { defineVerb, UsageError, type Verb } from "./verb.ts";
import { writeOutput } from "./write-output.ts";

const TIMEOUT_MS = 130_000;

function reportVerb(kind: ReportKind, description: string): Verb {
  return defineVerb({
    name: `report ${kind}`,
    description,
    example: `hearth report ${kind} --since 30d --format html --open`,
    args: {
      since: {
        type: "string",
        description: "The last days (30d, 4w), or all days since a date",
        valueHint: "30d|2026-11-01",
      },
      period: {
        type: "string",
        description: `The current day, week or month (default: ${kind === "spend" ? "month" : "week"})`,
        valueHint: "day|week|month",
      },
      last: {
        type: "boolean",
        description: "The last complete day, week or month instead",
      },
      format: {
        type: "string",
        description: "Output format (default: text)",
        valueHint: "text|json|csv|html",
      },
      json: { type: "boolean", description: "Same as --format json" },
      out: {
        type: "string",
        description: "Write the report to a file",
        valueHint: "file",
      },
      open: {
        type: "boolean",
        description: "Open the report in a browser (default format: html)",
      },
      ...addressArg,
    },
    run: (args) => showReport(kind, args),
  });
}

interface ReportOptions {
  readonly since?: string | undefined;
  readonly period?: string | undefined;
  readonly last?: boolean | undefined;
  readonly format?: string | undefined;
  readonly json?: boolean | undefined;
  readonly out?: string | undefined;
  readonly open?: boolean | undefined;
  readonly url?: string | undefined;
}

/** Options of which one would have no effect beside the other. */
const EXCLUSIVE = [
  ["since", "period"],
  ["since", "last"],
  ["json", "format"],
] as const;

async function showReport(kind: ReportKind, args: ReportOptions): Promise<0> {
  for (const [one, other] of EXCLUSIVE) {
    if (args[one] !== undefined && args[other] !== undefined) {
      throw new UsageError(`--${one} and --${other} cannot be combined.`);
    }
  }
  const format =
    args.format ??
    (args.json === true ? "json" : args.open === true ? "html" : "text");
  if (!REPORT_FORMATS.some((each) => each === format)) {
    throw new UsageError(
      `--format must be text, json, csv or html, not "${format}".`,
    );
  }
  const query = new URLSearchParams({
    format,
    period: args.period ?? (kind === "spend" ? "month" : "week"),
    last: String(args.last === true),
    ...(args.since === undefined ? {} : { since: args.since }),
  });
  const text = await findStack(args.url).askText(
    `/api/reports/${kind}?${query}`,
    TIMEOUT_MS,
  );
  const file =
    args.out ??
    (args.open === true
      ? join(mkdtempSync(join(tmpdir(), "hearth-report-")), `${kind}.${format}`)
      : undefined);
  if (file === undefined) {
    printPart(text);
  } else {
    writeOutput(file, text);
    print(file);
  }
  if (args.open === true && file !== undefined) {
    openFile(file);
  }
  return 0;
}

/** Opens the file with the desktop's program for it. */
function openFile(file: string): void {
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  const { pid, unref } = startProcess(opener, [file], {
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  });
  if (pid === undefined) {
    print(`${opener} not found: open the file in a browser.`);
  }
  unref();
}

const spend = reportVerb(
  "spend",
  "Show spend by user, key, team, alias and provider, with a forecast.",
);
const health = reportVerb(
  "health",
  "Show availability, incidents, backups and what needs attention.",
);

export const report: Verb = {
  name: "report",
  description:
    "Report spend and health of a period as text, JSON, CSV or HTML.",
  example: "hearth report spend --period month",
  verbs: {
    spend: async () => spend,
    health: async () => health,
  },
};
