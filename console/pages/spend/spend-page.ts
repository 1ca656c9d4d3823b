import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import { sendError } from "../../http/send-error.ts";
import { showPage, type Page } from "../../http/show-page.ts";
import { csvOf } from "../../../supervisor/reports/csv.ts";
import {
  groupCalls,
  sumOf,
  type CallSums,
  type DaySpend,
} from "../../../supervisor/reports/daily-sums.ts";
import { forecastFrom } from "../../../supervisor/reports/forecast.ts";
import {
  StillReading,
  type Cached,
} from "../../../supervisor/reports/read-cache.ts";
import { rankPayers, type Payer } from "../../../supervisor/reports/payers.ts";
import { inFull, type Period } from "../../../supervisor/reports/period.ts";
import { SpendReader } from "../../../supervisor/reports/spend-book.ts";
import { STROKES } from "../../../core/charts.ts";
import { periodOf, readChoice, type SpendChoice } from "./spend-choice.ts";
import { filterAndSort, csvRows } from "./spend-table.ts";
import {
  columnsFor,
  verdictOf,
  viewControls,
  viewSpend,
  type SpendFacts,
} from "./spend-view.ts";
import { capital } from "../../../core/words.ts";

interface SpendPageOptions {
  readonly env: Environment;
  /** IANA name. */
  readonly timeZone: string;
}

interface SpendContext {
  readonly book: SpendReader;
  readonly timeZone: string;
}

/** GET /spend — spend of a period by model, payer or day; GET /spend.csv — the table of that page. */
export function registerSpendPage(
  server: FastifyInstance,
  { env, timeZone }: SpendPageOptions,
): void {
  const book = new SpendReader(
    () => readVariable("SUPERVISOR_DATABASE_URL", env),
    timeZone,
    Date.now,
  );
  const reader = { book, timeZone };
  server.get("/spend", (request, reply) => showSpend(request, reply, reader));
  server.get("/spend.csv", (request, reply) => sendCsv(request, reply, reader));
}

async function showSpend(
  request: FastifyRequest,
  reply: FastifyReply,
  reader: SpendContext,
): Promise<FastifyReply> {
  const choice = readChoice(request.query);
  const today = await reader.book.today();
  const period = readPeriod(choice, today);
  const controls = viewControls(
    choice,
    today,
    period instanceof Failure ? null : period,
  );
  const show = (page: Omit<Page, "current">, view: object) =>
    showPage(request, reply, { ...page, current: "/spend" }, "spend", {
      ...controls,
      strokes: STROKES,
      mistake: null,
      away: null,
      shown: null,
      ...view,
    });
  if (period instanceof Failure) {
    return show(
      { status: 400, look: "warn", title: "Invalid period." },
      { mistake: capital(period.message) },
    );
  }
  try {
    const facts = await readFacts(reader, choice, period, today);
    return await show(verdictOf(facts), { shown: viewSpend(facts) });
  } catch (error) {
    const { away, ...page } = viewAway(asFailure(error));
    return show(page, { away });
  }
}

function viewAway(
  failure: Failure,
): Omit<Page, "current"> & { readonly away: string } {
  return failure instanceof StillReading
    ? {
        look: "rest",
        title: "Calculating spend.",
        refreshes: "soon",
        away: "Periods with many calls take some seconds. The page updates when the figures are ready.",
      }
    : {
        look: "warn",
        title: "Spend is unavailable.",
        refreshes: true,
        away: `${capital(failure.message)} No data is lost: calls are still recorded.`,
      };
}

async function sendCsv(
  request: FastifyRequest,
  reply: FastifyReply,
  reader: SpendContext,
): Promise<FastifyReply> {
  const choice = readChoice(request.query);
  const today = await reader.book.today();
  const period = readPeriod(choice, today);
  if (period instanceof Failure) {
    return sendError(reply, 400, capital(period.message));
  }
  const read = readFacts(reader, choice, period, today);
  const facts = await read.catch(asFailure);
  if (facts instanceof Failure) {
    return sendError(reply, 503, capital(facts.message));
  }
  const { rows, totals } = facts;
  const name = `spend-by-${choice.by}-${period.from}-to-${period.until}.csv`;
  return reply
    .type("text/csv; charset=utf-8")
    .header("content-disposition", `attachment; filename="${name}"`)
    .send(
      csvOf(
        csvRows(
          filterAndSort(rows, choice),
          columnsFor(choice.by),
          totals.spend,
        ),
      ),
    );
}

function readPeriod(choice: SpendChoice, today: string): Period | Failure {
  try {
    return periodOf(choice, today);
  } catch (error) {
    return asFailure(error);
  }
}

/** Rethrows what is not a Failure. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) {
    return error;
  }
  throw error;
}

/** Reads the data of the page in parallel; concurrent readers share the queries. */
async function readFacts(
  { book, timeZone }: SpendContext,
  choice: SpendChoice,
  period: Period,
  today: string,
): Promise<SpendFacts> {
  const [calls, earlier, todays, basis, corrections, payers] =
    await Promise.all([
      book.calls(period, today),
      book.calls(period.previous, today),
      book.calls({ from: today, until: today }, today),
      period.open ? book.forecastBasis(today) : nothing(null),
      book.corrections(period),
      readPayers(book, choice, period, today),
    ]);
  const totals = sumOf(calls.value);
  const group = (by: CallGroup) =>
    rankPayers(
      groupCalls(calls.value, by),
      groupCalls(earlier.value, by),
      totals.spend,
    );
  const stale = [calls, earlier, payers.rows, todays, corrections].find(
    ({ trouble }) => trouble !== null,
  );
  return {
    choice,
    period,
    totals,
    timeZone,
    previous: sumOf(earlier.value),
    forecast:
      basis.value === null
        ? null
        : forecastFrom(basis.value, sumOf(todays.value).spend, today),
    calls: calls.value,
    models: group("alias"),
    rows: isPayer(choice.by) ? payers.rows.value : rowsOf(choice.by, group),
    picked: isPayer(choice.by)
      ? payers.picked.value
      : pickedOf(calls.value, choice),
    corrections: corrections.value,
    stale:
      stale?.trouble == null
        ? null
        : { trouble: capital(stale.trouble), at: stale.at },
  };
}

/** Keys, users or teams, and the days of the selected ones; nothing for other tables. */
async function readPayers(
  book: SpendReader,
  { by, pick }: SpendChoice,
  period: Period,
  today: string,
) {
  const [rows, picked] = await Promise.all([
    isPayer(by) ? book.payers(by, period, today) : nothing([]),
    isPayer(by) && pick.length > 0
      ? book.daysOf(by, pick, period, today)
      : nothing([]),
  ]);
  return { rows, picked };
}

type CallGroup = "alias" | "provider" | "day";

function rowsOf(
  by: SpendChoice["by"],
  group: (by: CallGroup) => readonly Payer[],
): readonly Payer[] {
  return by === "day"
    ? group("day").map((row) => ({ ...row, name: inFull(row.id) }))
    : group(by === "model" ? "alias" : "provider");
}

function pickedOf(
  calls: readonly CallSums[],
  { by, pick }: SpendChoice,
): readonly DaySpend[] {
  return calls
    .map(({ day, alias, provider, sums }) => ({
      day,
      id: by === "model" ? alias : provider,
      spend: sums.spend,
    }))
    .filter(({ id }) => pick.includes(id));
}

function isPayer(by: SpendChoice["by"]): by is "key" | "user" | "team" {
  return by === "key" || by === "user" || by === "team";
}

async function nothing<T>(value: T): Promise<Cached<T>> {
  return { value, at: Infinity, trouble: null };
}
