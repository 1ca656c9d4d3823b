import type { FastifyInstance } from "fastify";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import { refuse } from "../../http/refuse.ts";
import { showPage } from "../../http/show-page.ts";
import { csvOf } from "../../../supervisor/reports/csv.ts";
import { groupCalls, sumOf } from "../../../supervisor/reports/daily-sums.ts";
import { forecastFrom } from "../../../supervisor/reports/forecast.ts";
import { StillReading, type Kept } from "../../../supervisor/reports/kept.ts";
import { rankPayers } from "../../../supervisor/reports/payers.ts";
import { inFull, type Period } from "../../../supervisor/reports/period.ts";
import {
  openSpendBook,
  type SpendBook,
} from "../../../supervisor/reports/spend-book.ts";
import { STROKES } from "../../../core/charts.ts";
import { periodOf, readChoice, type SpendChoice } from "./spend-choice.ts";
import { arrange, csvRows } from "./spend-table.ts";
import {
  columnsFor,
  verdictOf,
  viewControls,
  viewSpend,
  type SpendFacts,
} from "./spend-view.ts";
import { dayIn } from "../../../core/words.ts";

export interface SpendPageOptions {
  readonly env: Environment;
  /** IANA name. */
  readonly timeZone: string;
}

/** GET /spend — what was spent in some days, by whom and for what; GET /spend.csv — the table of that page. */
export function registerSpendPage(
  server: FastifyInstance,
  { env, timeZone }: SpendPageOptions,
): void {
  const book = openSpendBook(
    () => readVariable("SUPERVISOR_DATABASE_URL", env),
    Date.now,
  );

  server.get("/spend", async (request, reply) => {
    const choice = readChoice(request.query);
    const today = dayIn(timeZone, Date.now());
    const controls = viewControls(choice, today);
    const page = { current: "/spend" };
    const period = understand(choice, today);
    if (period instanceof Failure) {
      return showPage(
        request,
        reply,
        {
          ...page,
          status: 400,
          look: "warn",
          title: "These are no days to look at.",
        },
        "spend",
        {
          ...controls,
          mistake: capital(period.message),
          away: null,
          shown: null,
        },
      );
    }
    try {
      const facts = await readFacts(book, choice, period, today, timeZone);
      return await showPage(
        request,
        reply,
        { ...page, ...verdictOf(facts) },
        "spend",
        {
          ...controls,
          strokes: STROKES,
          mistake: null,
          away: null,
          shown: viewSpend(facts),
        },
      );
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      const soon = error instanceof StillReading;
      return showPage(
        request,
        reply,
        {
          ...page,
          look: soon ? "rest" : "warn",
          title: soon
            ? "The ledger is being added up."
            : "What was spent cannot be read now.",
          refreshes: soon ? "soon" : true,
        },
        "spend",
        {
          ...controls,
          mistake: null,
          shown: null,
          away: soon
            ? "These days have many calls: this page shows them by itself in a moment."
            : `${capital(error.message)} Nothing is lost: calls are counted all the same.`,
        },
      );
    }
  });

  server.get("/spend.csv", async (request, reply) => {
    const choice = readChoice(request.query);
    const today = dayIn(timeZone, Date.now());
    const period = understand(choice, today);
    if (period instanceof Failure) {
      return refuse(reply, 400, capital(period.message));
    }
    const read = readFacts(book, choice, period, today, timeZone);
    const facts = await read.catch(asFailure);
    if (facts instanceof Failure) {
      return refuse(reply, 503, capital(facts.message));
    }
    const { rows, totals } = facts;
    const name = `spend-by-${choice.by}-${period.from}-to-${period.until}.csv`;
    return reply
      .type("text/csv; charset=utf-8")
      .header("content-disposition", `attachment; filename="${name}"`)
      .send(
        csvOf(
          csvRows(arrange(rows, choice), columnsFor(choice.by), totals.spend),
        ),
      );
  });
}

function understand(choice: SpendChoice, today: string): Period | Failure {
  try {
    return periodOf(choice, today);
  } catch (error) {
    return asFailure(error);
  }
}

/** What a reader is told; anything else is our own mistake. */
function asFailure(error: unknown): Failure {
  if (error instanceof Failure) {
    return error;
  }
  throw error;
}

/** Reads all that the page shows; what is asked for at once is read at once. */
async function readFacts(
  book: SpendBook,
  choice: SpendChoice,
  period: Period,
  today: string,
  timeZone: string,
): Promise<SpendFacts> {
  const { by, pick } = choice;
  const [calls, earlier, payers, todays, basis, picked, corrections] =
    await Promise.all([
      book.calls(period, today),
      book.calls(period.previous, today),
      isPayer(by) ? book.payers(by, period, today) : nothing([]),
      book.calls({ from: today, until: today }, today),
      period.open ? book.forecastBasis(today) : nothing(null),
      isPayer(by) && pick.length > 0
        ? book.daysOf(by, pick, period, today)
        : nothing([]),
      book.corrections(period),
    ]);
  const totals = sumOf(calls.value);
  const group = (by: "alias" | "provider" | "day") =>
    rankPayers(
      groupCalls(calls.value, by),
      groupCalls(earlier.value, by),
      totals.spend,
    );
  const trouble = [calls, earlier, payers, todays, corrections].find(
    (each) => each.trouble !== null,
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
    rows: isPayer(by)
      ? payers.value
      : by === "day"
        ? group("day").map((row) => ({ ...row, name: inFull(row.id) }))
        : group(by === "model" ? "alias" : "provider"),
    picked: isPayer(by)
      ? picked.value
      : calls.value
          .map(({ day, alias, provider, sums }) => ({
            day,
            id: by === "model" ? alias : provider,
            spend: sums.spend,
          }))
          .filter(({ id }) => pick.includes(id)),
    corrections: corrections.value,
    stale:
      trouble?.trouble == null
        ? null
        : { trouble: capital(trouble.trouble), at: trouble.at },
  };
}

function isPayer(by: SpendChoice["by"]): by is "key" | "user" | "team" {
  return by === "key" || by === "user" || by === "team";
}

async function nothing<T>(value: T): Promise<Kept<T>> {
  return { value, at: Infinity, trouble: null };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
