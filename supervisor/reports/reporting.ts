import { readVariable } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";
import type { Context } from "../context.ts";
import { readHealthReport } from "./health-report.ts";
import { dayIn } from "../../core/words.ts";
import { openLedgerDay } from "./ledger-day.ts";
import { choosePeriod, type PeriodChoice } from "./period.ts";
import type { Report, ReportKind } from "./report.ts";
import { readSpendReport } from "./spend-report.ts";

/** Creates a report of some days as of `now`. Throws a Failure if Postgres cannot be reached (spend), an InvalidPeriod for invalid days. */
export type MakeReport = (
  kind: ReportKind,
  choice: PeriodChoice,
  now: number,
  signal: AbortSignal,
) => Promise<Report>;

export function openReporting(context: Context): MakeReport {
  const { env, config, history, jobs } = context;
  const timeZone = config.jobs.time_zone;
  const databaseUrl = () => readVariable("SUPERVISOR_DATABASE_URL", env);
  const ledgerDay = openLedgerDay(databaseUrl, timeZone, Date.now);
  return async (kind, choice, now, signal) => {
    const ownDay = dayIn(timeZone, now);
    switch (kind) {
      case "spend": {
        const url = databaseUrl();
        if (url === undefined) {
          throw new Failure(
            "this supervisor cannot read spend: set SUPERVISOR_DATABASE_URL to the address of Postgres with the role supervisor.",
          );
        }
        const today = await ledgerDay(now);
        // On the first of a month at 8:00 the last one is over for the operator, also where the ledger's ends hours later.
        const last = choice.complete && ownDay > today ? ownDay : today;
        const period = choosePeriod(choice, last);
        return readSpendReport(url, { period, timeZone, today, now, signal });
      }
      case "health":
        return readHealthReport({
          db: history.db,
          checks: config.checks,
          jobs: jobs.list(),
          attention: context.attention(),
          period: choosePeriod(choice, ownDay),
          timeZone,
          now,
        });
    }
  };
}
