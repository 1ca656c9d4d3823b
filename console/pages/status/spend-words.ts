import { moment, money, percent, grouped } from "../../../core/words.ts";
import { changeWords } from "../../../supervisor/reports/findings.ts";
import { callsHref } from "../calls/call-choice.ts";
import { drawDays } from "./day-chart.ts";
import type { MonthSpend, SpendView } from "./month-spend.ts";

/** This month's spend in words, for the template. */
export function viewSpend(view: SpendView, now: number, timeZone: string) {
  switch (view.kind) {
    case "unknown":
      return { kind: view.kind, note: null, month: null };
    case "reading":
      return {
        kind: view.kind,
        note: "Calculating spend from the ledger; the figures appear shortly.",
        month: null,
      };
    case "away":
      return {
        kind: view.kind,
        note:
          view.last === null
            ? `${view.why} Spend is shown once this is fixed. No data is lost.`
            : `${view.why} Figures from ${moment(view.last.at, timeZone)}.`,
        month:
          view.last === null
            ? null
            : viewMonth(view.last.spend, view.last.at, timeZone),
      };
    case "known":
      return {
        kind: view.kind,
        note: null,
        month: viewMonth(view.spend, now, timeZone),
      };
  }
}

function viewMonth(month: MonthSpend, at: number, timeZone: string) {
  const [year = 0, monthNumber = 0, day = 1] = new Intl.DateTimeFormat(
    "en-CA",
    { timeZone },
  )
    .format(at)
    .split("-")
    .map(Number);
  const days = new Date(Date.UTC(year, monthNumber, 0)).getUTCDate();
  const from = `${year}-${String(monthNumber).padStart(2, "0")}-01`;
  const before = new Intl.DateTimeFormat("en-GB", {
    month: "long",
    timeZone: "UTC",
  }).format(Date.UTC(year, monthNumber - 2, 1));
  return {
    empty: month.calls === 0,
    figures: [
      {
        name: "Spend",
        value: money(month.spend),
        note: comparison(month, before),
        href: callsHref({ from }),
      },
      {
        name: "Forecast",
        value: money((month.spend / day) * days),
        note: `at the current rate, for ${days} days`,
        href: null,
      },
      {
        name: "Calls",
        value: grouped(month.calls),
        note: `${grouped(month.failed)} failed · ${percent(share(month.failed, month.calls))}`,
        href: callsHref(
          month.failed === 0 ? { from } : { status: "failure", from },
        ),
      },
      {
        name: "Answered from cache",
        value: percent(share(month.cached, month.calls)),
        note: `about ${money(month.saved)} saved by caches`,
        href: null,
      },
    ],
    chart: drawDays(month.days),
    payers: month.payers.map(({ model, token, key, spend, used }) => ({
      href: callsHref({ key: token, model, from }),
      model,
      key,
      spend: money(spend),
      used: used === null ? "–" : percent(used),
      meter: used === null ? null : Math.min(100, Math.round(used * 100)),
      look: used === null || used < 0.8 ? "ok" : used < 1 ? "warn" : "bad",
    })),
  };
}

function comparison({ spend, before }: MonthSpend, month: string): string {
  if (before === 0) {
    return `nothing in ${month} by this day`;
  }
  return changeWords((spend - before) / before, `${month} by this day`);
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
