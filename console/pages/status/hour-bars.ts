import type { HourBar } from "../../../supervisor/checks/check-reports.ts";
import { drawStrip, type Colour } from "../../../core/charts.ts";
import { inWords } from "../../../core/duration.ts";
import type { Look } from "../../../core/shapes.ts";

const COLOURS: Readonly<Record<Look, Colour>> = {
  ok: "calm",
  warn: "warn",
  bad: "bad",
  rest: "rest",
  none: "none",
};
/** Faults differ in height too, so that colour is never alone. */
const heights: Readonly<Record<Look, number>> = {
  ok: 26,
  warn: 18,
  bad: 10,
  rest: 26,
  none: 26,
};
/** Of an hour: below it some looks failed, from it on it was down. */
const DOWN_AFTER_MS = 60_000;

/**
 * A column for each hour (or longer step), drawn; hover and the text alternative tell time and cause. Markup of numbers and our
 * own words only.
 */
export function drawHours(
  bars: readonly HourBar[],
  {
    title,
    tell,
  }: { readonly title: string; readonly tell: (at: number) => string },
): string {
  const faults = bars
    .filter((bar) => ["bad", "warn"].includes(lookOfHour(bar)))
    .map((bar) => `${tell(bar.hour)} ${wordsOf(bar, lookOfHour(bar))}`);
  return drawStrip(
    bars.map((bar) => {
      const look = lookOfHour(bar);
      return {
        height: heights[look],
        colour: COLOURS[look],
        title: `${tell(bar.hour)} ${wordsOf(bar, look)}`,
      };
    }),
    `${title}: ${faults.length === 0 ? "no fault" : faults.join(", ")}`,
  );
}

function lookOfHour({ looks, failures, upMs, downMs, apartMs }: HourBar): Look {
  if (downMs >= DOWN_AFTER_MS || downMs > upMs) {
    return "bad";
  }
  if (downMs > 0 || failures > 0) {
    return "warn";
  }
  if (apartMs > upMs) {
    return "rest";
  }
  return looks === 0 && upMs === 0 ? "none" : "ok";
}

function wordsOf({ downMs, failures, apartMs }: HourBar, look: Look): string {
  switch (look) {
    case "ok":
      return "up";
    case "warn":
      return `${failures} failed ${failures === 1 ? "look" : "looks"}`;
    case "bad":
      return `down ${inWords(downMs)}`;
    case "rest":
      return `apart ${inWords(apartMs)} (maintenance, or nobody watched)`;
    case "none":
      return "not watched";
  }
}
