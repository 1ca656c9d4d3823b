import { counted } from "../../../core/words.ts";
import type { HourBar } from "../../../supervisor/checks/check-reports.ts";
import { drawStrip, type Colour } from "../../../core/charts.ts";
import { MINUTE_MS, inWords } from "../../../core/duration.ts";
import type { Look } from "../../../core/shapes.ts";

const COLOURS: Readonly<Record<Look, Colour>> = {
  ok: "calm",
  warn: "warn",
  bad: "bad",
  rest: "rest",
  none: "none",
};
/** Faults differ in height, too: colour is never the only difference. */
const heights: Readonly<Record<Look, number>> = {
  ok: 26,
  warn: 18,
  bad: 10,
  rest: 26,
  // A gap with its base line: a stack that was started today has no faults yet.
  none: 2,
};
/** A shorter downtime within an hour counts as failed checks. */
const DOWN_AFTER_MS = MINUTE_MS;

/**
 * Draws a bar for each hour or longer step, titled with time and cause. The markup has numbers and fixed words only.
 */
export function drawHours(
  bars: readonly HourBar[],
  {
    title,
    format,
  }: { readonly title: string; readonly format: (at: number) => string },
): string {
  const faults = bars
    .filter((bar) => ["bad", "warn"].includes(lookOfHour(bar)))
    .map((bar) => `${format(bar.hour)} ${wordsOf(bar, lookOfHour(bar))}`);
  return drawStrip(
    bars.map((bar) => {
      const look = lookOfHour(bar);
      return {
        height: heights[look],
        colour: COLOURS[look],
        title: `${format(bar.hour)} ${wordsOf(bar, look)}`,
      };
    }),
    `${title}: ${faults.length === 0 ? "no failed checks" : faults.join(", ")}`,
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
      return counted(failures, "failed check");
    case "bad":
      return `down ${inWords(downMs)}`;
    case "rest":
      return `maintenance or not monitored for ${inWords(apartMs)}`;
    case "none":
      return "not monitored";
  }
}
