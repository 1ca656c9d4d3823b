import { readFileSync } from "node:fs";
import { drawLines, STROKES, type Colour } from "../../core/charts.ts";
import type { Frontier } from "./frontier.ts";

const COLOURS: readonly Colour[] = ["two", "one", "three", "four", "rest"];
/** The chart as `drawLines` draws it, with a legend above and the name of the x axis below. */
const [WIDTH, LEGEND, CHART, CAPTION] = [480, 40, 212, 26];
const MARGIN = 12;
/** Of a line in the legend, and from there to its name. */
const [DASH, GAP] = [28, 6];
const LETTER_WIDTH = 8;
const STYLESHEET = new URL("../../core/hearth.css", import.meta.url);

/** A picture of the frontier that is readable by day and by night: a line for each target over the bounds of the tail. */
export function drawFrontier(frontiers: readonly Frontier[]): string {
  const series = frontiers.map(({ target, readings }, at) => ({
    name: target,
    colour: COLOURS[at % COLOURS.length] ?? "one",
    values: readings.map(({ calls_per_second: calls }) => calls),
  }));
  const bounds = frontiers[0]?.readings.map(({ bound_ms }) => bound_ms) ?? [];
  const chart = drawLines(
    {
      labels: bounds.map((bound) => `${bound} ms`),
      series,
      label: (calls) => calls.toLocaleString("en"),
      scale: "log",
    },
    "calls per second by the bound of the tail; the numbers are in the table",
  );
  const height = LEGEND + CHART + CAPTION;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH * 1.5}" height="${height * 1.5}" font-family="system-ui, sans-serif">`,
    `<style>${colours()}</style>`,
    `<rect width="${WIDTH}" height="${height}" fill="var(--card)"/>`,
    legend(series),
    `<svg y="${LEGEND}" width="${WIDTH}" height="${CHART}">${chart}</svg>`,
    `<text x="${WIDTH / 2}" y="${height - 10}" text-anchor="middle" font-size="13" fill="var(--soft)">the most calls per second with p99 within</text>`,
    "</svg>\n",
  ].join("\n");
}

interface Series {
  readonly name: string;
  readonly colour: Colour;
}

function legend(series: readonly Series[]): string {
  let x = MARGIN;
  return series
    .map(({ name, colour }, at) => {
      const text = x + DASH + GAP;
      const item = `<line x1="${x}" x2="${x + DASH}" y1="20" y2="20" stroke="var(--${colour})" stroke-width="2.5" stroke-dasharray="${STROKES[at % STROKES.length]}"/><text x="${text}" y="25" font-size="15" fill="var(--ink)">${name}</text>`;
      x = text + name.length * LETTER_WIDTH + 2 * MARGIN;
      return item;
    })
    .join("\n");
}

/** The stylesheet's colours, by day and by night: a picture in a page does not see that page's theme. */
function colours(): string {
  const pairs = [
    ...readFileSync(STYLESHEET, "utf8").matchAll(
      /(--[a-z]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\);/g,
    ),
  ];
  const block = (theme: 2 | 3) =>
    `:root{${pairs.map((pair) => `${pair[1]}:${pair[theme]}`).join(";")}}`;
  return `${block(2)}@media (prefers-color-scheme:dark){${block(3)}}`;
}
