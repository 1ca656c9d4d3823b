import type { ChartData } from "../../supervisor/reports/charts.ts";

/** Small, so that its letters can be read where it is scaled down to a phone. */
const [width, top, bottom, right] = [480, 40, 210, 6];
/** Of a letter at the size that the labels have, roughly. */
const LETTER_WIDTH = 8.5;
/** Colour is never alone: each line of a chart has a stroke of its own. */
export const STROKES = ["", "8 4", "2 4", "12 3 2 3", "5 2", "1 6"] as const;

/**
 * Columns that stand on each other. Drawn by hand, as all charts of the console: a chart library would cost the supervisor
 * more memory than all else it does. Markup of numbers, labels and our own words only.
 */
export function drawColumns(data: ChartData, description: string): string {
  const plot = planFor(
    data,
    data.labels.map((_, at) =>
      data.series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
    ),
  );
  const bars = data.labels.flatMap((_, at) => {
    let base = 0;
    return data.series.map(({ values, colour }) => {
      const value = values[at] ?? 0;
      if (value <= 0) {
        return "";
      }
      const from = plot.y(base);
      base += value;
      const x = plot.x(at) - plot.step * 0.38;
      return `<rect x="${x.toFixed(1)}" y="${plot.y(base).toFixed(1)}" width="${(plot.step * 0.76).toFixed(1)}" height="${(from - plot.y(base)).toFixed(1)}" fill="var(--${colour})"/>`;
    });
  });
  return plot.around(bars.join(""), description);
}

/** A line for each series; it is broken where there is no value. */
export function drawLines(data: ChartData, description: string): string {
  const plot = planFor(
    data,
    data.series.flatMap(({ values }) => values.map((value) => value ?? 0)),
  );
  const lines = data.series.map(({ values, colour }, index) =>
    stretchesOf(values)
      .map((stretch) => {
        const points = stretch.map(
          ([at, value]) =>
            `${plot.x(at).toFixed(1)},${plot.y(value).toFixed(1)}`,
        );
        const [x, y] = (points[0] ?? "").split(",");
        return points.length === 1
          ? `<circle cx="${x}" cy="${y}" r="3" fill="var(--${colour})"/>`
          : `<polyline points="${points.join(" ")}" fill="none" stroke="var(--${colour})" stroke-width="2.5" stroke-linejoin="round" stroke-dasharray="${STROKES[index % STROKES.length]}"/>`;
      })
      .join(""),
  );
  return plot.around(lines.join(""), description);
}

/** Where things lie between the axes, and the axes around them. */
function planFor(
  { labels, label }: ChartData,
  heights: readonly number[],
): {
  readonly step: number;
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
  readonly around: (drawn: string, description: string) => string;
} {
  const peak = roundUp(Math.max(0, ...heights));
  const ticks = [0, peak / 2, peak].map((value) => ({
    value,
    text: label(value),
  }));
  const left = 12 + LETTER_WIDTH * widest(ticks.map(({ text }) => text));
  const step = (width - left - right) / Math.max(1, labels.length);
  const x = (at: number) => left + (at + 0.5) * step;
  const y = (value: number) => bottom - (value / peak) * (bottom - top);
  const every = Math.ceil((LETTER_WIDTH * widest(labels) + 14) / step);
  const axes = [
    ...ticks.map(
      ({ value, text }) =>
        `<line x1="${left.toFixed(1)}" x2="${width - right}" y1="${y(value)}" y2="${y(value)}" stroke="var(--line)"/><text x="${(left - 6).toFixed(1)}" y="${y(value) + 5}" text-anchor="end">${escaped(text)}</text>`,
    ),
    ...labels.flatMap((text, at) =>
      at % every === 0
        ? [
            `<text x="${Math.min(x(at), width - right - (LETTER_WIDTH * text.length) / 2).toFixed(1)}" y="232" text-anchor="middle">${escaped(text)}</text>`,
          ]
        : [],
    ),
  ];
  return {
    step,
    x,
    y,
    around: (drawn, description) =>
      `<svg viewBox="0 26 ${width} 212" role="img" aria-label="${escaped(description)}" fill="var(--soft)" font-size="15">${axes.join("")}${drawn}</svg>`,
  };
}

/** Runs of values without a gap, each value with its place. */
function stretchesOf(
  values: readonly (number | null)[],
): readonly (readonly (readonly [number, number])[])[] {
  const stretches: (readonly [number, number])[][] = [[]];
  for (const [at, value] of values.entries()) {
    if (value === null) {
      stretches.push([]);
    } else {
      stretches.at(-1)?.push([at, value]);
    }
  }
  return stretches.filter(({ length }) => length > 0);
}

/** The next round number whose half is one too; 1 for nothing. */
function roundUp(value: number): number {
  if (value <= 0) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  const factor =
    [1, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value) ?? 10;
  return factor * power;
}

function widest(texts: readonly string[]): number {
  return Math.max(1, ...texts.map(({ length }) => length));
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll('"', "&quot;");
}
