import { drawBarChart, drawMeter } from "../../core/charts.ts";
import type { Html } from "../../core/html.ts";
import { daysFrom, money } from "../../core/words.ts";
import { dayName } from "./words.ts";

interface DayBar {
  readonly date: string;
  readonly spend: number;
}

const SIZE = { width: 720, height: 130 };
const MAX_BAR_HEIGHT = 127;

/** A bar for each day of a period, including days without calls. */
export function dayBars(
  days: readonly DayBar[],
  start: string,
  end: string,
): Html {
  const spends = new Map(days.map(({ date, spend }) => [date, spend]));
  const most = Math.max(0, ...spends.values());
  const total = days.reduce((sum, { spend }) => sum + spend, 0);
  const bars = daysFrom(start, end).map((date) => {
    const spend = spends.get(date) ?? 0;
    return {
      height: spend <= 0 ? 0 : Math.max(1, (MAX_BAR_HEIGHT * spend) / most),
      colour: "one" as const,
      title: `${dayName(date)}: ${money(spend)}`,
    };
  });
  return {
    html: drawBarChart(
      bars,
      `Spend by day: ${money(total)} from ${dayName(start)} to ${dayName(end)}, at most ${money(most)} a day`,
      SIZE,
    ),
  };
}

/** The used share of a whole, from 0 to 1. */
export function meter(share: number, label: string): Html {
  return { html: drawMeter(share, label) };
}
