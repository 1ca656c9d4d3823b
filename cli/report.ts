import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "../core/execute.ts";
import { Failure, sentencesOf } from "../core/failure.ts";
import {
  REPORT_FORMATS,
  type ReportKind,
} from "../supervisor/reports/report.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, UsageError, type Verb } from "./verb.ts";

const MAKE_WITHIN_MS = 130_000;

function reportVerb(kind: ReportKind, description: string): Verb {
  return defineVerb({
    name: `report ${kind}`,
    description,
    example: `hearth report ${kind} --since 30d --format html --open`,
    args: {
      since: {
        type: "string",
        description: "Days up to today: 30d, 4w, or from a day on",
        valueHint: "30d|2026-11-01",
      },
      period: {
        type: "string",
        description: `Or the day, week or month that goes on (${kind === "spend" ? "month" : "week"} when left out)`,
        valueHint: "day|week|month",
      },
      last: {
        type: "boolean",
        description: "The last whole one instead",
      },
      format: {
        type: "string",
        description: "text when left out",
        valueHint: "text|json|csv|html",
      },
      json: { type: "boolean", description: "The same as --format json" },
      out: {
        type: "string",
        description: "Write it to a file",
        valueHint: "file",
      },
      open: {
        type: "boolean",
        description: "Show it in a browser (html when no format is given)",
      },
      ...addressArg,
    },
    run: async (args) => {
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
        MAKE_WITHIN_MS,
      );
      const file =
        args.out ??
        (args.open === true
          ? join(
              mkdtempSync(join(tmpdir(), "hearth-report-")),
              `${kind}.${format}`,
            )
          : undefined);
      if (file === undefined) {
        process.stdout.write(text);
      } else {
        writeTo(file, text);
        print(file);
      }
      if (args.open === true && file !== undefined) {
        openFile(file);
      }
      return 0;
    },
  });
}

function writeTo(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw new Failure(sentencesOf(error, file));
  }
}

/** With the program that the desktop has for it; where there is none, the file's name was printed. */
function openFile(file: string): void {
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  const { pid, unref } = startProcess(opener, [file], {
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  });
  if (pid === undefined) {
    print(`${opener} is not installed: open the file yourself.`);
  }
  unref();
}

const spend = reportVerb(
  "spend",
  "What was spent: by user, key, team, alias and provider, with a forecast.",
);
const health = reportVerb(
  "health",
  "How everything did: availability, incidents, backups, what needs attention.",
);

export const report: Verb = {
  name: "report",
  description: "Spend and health of some days: as text, JSON, CSV or a page.",
  example: "hearth report spend --period month",
  verbs: {
    spend: async () => spend,
    health: async () => health,
  },
};
