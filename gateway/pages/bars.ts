import { html, NOTHING, type Html } from "./html.ts";
import { dayName, money } from "./words.ts";

export interface DayBar {
  readonly date: string;
  readonly spend: number;
}

const WIDTH = 720;
const HEIGHT = 130;
const GROUND = HEIGHT - 1;
const TOP = 2;

/** A bar for each day of a period, days without calls included; drawn here, so that no script and no library is needed. */
export function dayBars(
  days: readonly DayBar[],
  start: string,
  end: string,
): Html {
  const spends = new Map(days.map(({ date, spend }) => [date, spend]));
  const all = daysBetween(start, end);
  const most = Math.max(0, ...spends.values());
  const step = WIDTH / all.length;
  const total = days.reduce((sum, { spend }) => sum + spend, 0);
  return html`<svg
    viewBox="0 0 ${WIDTH} ${HEIGHT}"
    role="img"
    aria-label="Spend by day: ${money(total)} from ${dayName(start)} to ${dayName(end)}, at most ${money(most)} a day"
  >
    <line x1="0" y1="${GROUND}" x2="${WIDTH}" y2="${GROUND}" class="axis" />
    ${all.map((date, at) => bar(date, spends.get(date) ?? 0, most, at, step))}
  </svg>`;
}

function bar(
  date: string,
  spend: number,
  most: number,
  at: number,
  step: number,
): Html {
  if (spend <= 0) {
    return NOTHING;
  }
  const height = Math.max(1, ((GROUND - TOP) * spend) / most);
  const width = Math.max(1, step * 0.8);
  return html`<rect
    class="bar"
    x="${(at * step + (step - width) / 2).toFixed(2)}"
    y="${(GROUND - height).toFixed(2)}"
    width="${width.toFixed(2)}"
    height="${height.toFixed(2)}"
    rx="2"
  >
    <title>${dayName(date)}: ${money(spend)}</title>
  </rect>`;
}

const DAY_MS = 86_400_000;

function daysBetween(start: string, end: string): readonly string[] {
  const first = Date.parse(start);
  const count = Math.round((Date.parse(end) - first) / DAY_MS) + 1;
  return Array.from({ length: Math.max(1, count) }, (_, at) =>
    new Date(first + at * DAY_MS).toISOString().slice(0, 10),
  );
}

/** How much of a whole is used, from 0 to 1. */
export function meter(share: number, label: string): Html {
  const used = Math.min(1, Math.max(0, share));
  const look = used >= 1 ? "bad" : used >= 0.8 ? "warn" : "ok";
  return html`<svg
    class="meter ${look}"
    viewBox="0 0 100 4"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    <rect class="whole" width="100" height="4" />
    <rect width="${(used * 100).toFixed(1)}" height="4" fill="currentColor" />
  </svg>`;
}
