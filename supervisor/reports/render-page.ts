import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Eta } from "eta";
import { projectRoot } from "../home/home.ts";
import { iconOf, shapeOf, signs, type Look } from "../../core/shapes.ts";
import { fitTables } from "../../core/table-cells.ts";
import { keepAmountsWhole } from "../../core/whole-amounts.ts";
import { moment, readable } from "../../core/words.ts";
import {
  healthFindings,
  healthVerdict,
  spendFindings,
  spendVerdict,
  type Finding,
} from "./findings.ts";
import { viewHealth } from "./health-page.ts";
import { daysInFull } from "./period.ts";
import type { Report } from "./report.ts";
import { viewSpend } from "./spend-page.ts";

/** A report as one self-contained page without scripts, fonts or external resources. */
export function renderReportPage(report: Report): string {
  const eta = new Eta({
    views: join(projectRoot, "supervisor", "reports", "templates"),
    cache: true,
  });
  const { period, timeZone, madeAt } = report;
  const isSpend = report.kind === "spend";
  const findings = isSpend ? spendFindings(report) : healthFindings(report);
  const look = lookOf(report, findings);
  const page = eta.render("frame", {
    findings,
    look,
    timeZone,
    shapeOf,
    version: version(),
    title: isSpend ? spendVerdict(report) : healthVerdict(report),
    name: isSpend ? "spend report" : "health report",
    subline: daysInFull(period),
    sign: signs[look],
    icon: iconOf(look),
    madeAt: moment(Date.parse(madeAt), timeZone),
    stylesheet: readFileSync(join(projectRoot, "core", "hearth.css"), "utf8"),
    body: fitTables(
      isSpend
        ? eta.render("spend", viewSpend(report))
        : eta.render("health", viewHealth(report)),
    ),
  });
  return keepAmountsWhole(readable(page));
}

function lookOf(report: Report, findings: readonly Finding[]): Look {
  if (findings.some(({ level }) => level === "down")) {
    return "bad";
  }
  if (findings.length > 0) {
    return "warn";
  }
  return report.kind === "health" && report.checks.length === 0 ? "none" : "ok";
}

function version(): string {
  const { version } = JSON.parse(
    readFileSync(join(projectRoot, "supervisor", "package.json"), "utf8"),
  ) as { readonly version: string };
  return version;
}
