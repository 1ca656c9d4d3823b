import { rowsOf, withDatabase } from "../backup/database.ts";
import { readVariable } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";
import type { Context } from "../context.ts";
import { scheduleOf } from "./config.ts";
import type { Job, JobOutcome } from "./job.ts";

const MAX_DIFFERENCES = 100;
const SHOWN = 3;

interface Difference extends Record<string, unknown> {
  readonly kind: string;
  readonly name: string;
  readonly period: string;
  readonly recorded: string;
  readonly summed: string;
}

/** Compares every total, budget period and day with its rows; needs only Postgres. Ten million rows take two minutes. */
export function ledgerCheckJob({ env, config }: Context): Job {
  const settings = config.jobs.ledger_check;
  const url = readVariable("SUPERVISOR_DATABASE_URL", env);
  return {
    name: "ledger-check",
    description: "Add up the ledger and compare every sum with its rows.",
    schedule: {
      ...scheduleOf(settings),
      cron: url === undefined ? null : settings.cron,
    },
    run: ({ signal, progress }) => {
      if (url === undefined) {
        throw new Failure(
          "this supervisor cannot read the ledger: set SUPERVISOR_DATABASE_URL to the address of Postgres with the role supervisor.",
        );
      }
      progress("adding up the ledger");
      return checkLedger(url, signal);
    },
  };
}

/** Throws a Failure that names the first sums that differ. */
export async function checkLedger(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<JobOutcome> {
  const [differences, compared] = await withDatabase(
    databaseUrl,
    signal,
    async (client) => [
      await rowsOf<Difference>(
        client,
        `SELECT kind, name, period, recorded::text AS recorded, summed::text AS summed
           FROM report_check ORDER BY kind, name, period LIMIT ${MAX_DIFFERENCES}`,
      ),
      await rowsOf<{ totals: string; days: string }>(
        client,
        `SELECT (SELECT count(*) FROM report_totals)::text AS totals,
           (SELECT count(DISTINCT day) FROM report_daily_spend)::text AS days`,
      ),
    ],
  );
  if (differences.length === 0) {
    return {
      status: "done",
      summary: summaryOf(compared[0]),
      details: { ...compared[0] },
    };
  }
  const named = differences
    .slice(0, SHOWN)
    .map(
      ({ kind, name, period, recorded, summed }) =>
        `${kind} ${name} (${period}) is ${recorded}, its rows sum to ${summed}`,
    )
    .join("; ");
  const more = differences.length - SHOWN;
  throw new Failure(
    `${differences.length === MAX_DIFFERENCES ? `${MAX_DIFFERENCES} or more` : differences.length} sums of the ledger differ from their rows: ${named}${more > 0 ? `; and ${more} more` : ""}. Compare with GET /spend/check of the gateway, keep the journals, and restore if a disk failed.`,
  );
}

function summaryOf({
  totals = "0",
  days = "0",
}: { readonly totals?: string; readonly days?: string } = {}): string {
  return `${totals} ${totals === "1" ? "total" : "totals"} and ${days} ${days === "1" ? "day" : "days"} agree with their rows.`;
}
