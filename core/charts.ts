/** Colours of the stylesheet; they differ by day and by night. */
export type Colour =
  "one" | "two" | "three" | "four" | "none" | "calm" | "warn" | "bad" | "rest";

/** Numbers over time, one colour per series. */
export interface ChartData {
  /** Of the x axis; what follows a comma is left out: "9 Nov, 00:00" becomes "9 Nov". */
  readonly labels: readonly string[];
  readonly series: readonly {
    readonly name: string;
    readonly colour: Colour;
    /** One per label; null where the value is unknown. */
    readonly values: readonly (number | null)[];
  }[];
  /** Writes a value of the y axis. */
  readonly label: (value: number) => string;
  /** Of the y axis. A logarithmic one has a line at each power of ten, and no place for 0. */
  readonly scale?: "linear" | "log";
}

/** One bar of a row, explained by its title. */
export interface Bar {
  /** In units of the row's height; no bar is drawn for 0. */
  readonly height: number;
  readonly colour: Colour;
  readonly title: string;
}

/** Dashes of the lines of a chart, by series: colour is never the only difference. */
export const STROKES = ["", "8 4", "2 4", "12 3 2 3", "5 2", "1 6"] as const;

/** Small enough for labels to be readable when the chart is scaled down to a phone. */
const [WIDTH, TOP, BOTTOM, RIGHT] = [480, 40, 210, 6];
/** Approximate width of a letter at the font size of the labels. */
const LETTER_WIDTH = 8.5;

/** Stacked columns as SVG. All texts are escaped. */
export function drawColumns(data: ChartData, description: string): string {
  const plot = planPlot(
    data,
    data.labels.map((_, at) =>
      data.series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
    ),
  );
  const columns = data.labels.flatMap((_, at) => {
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
  return framePlot(plot, columns.join(""), description);
}

/** A line for each series as SVG, interrupted where values are unknown. All texts are escaped. */
export function drawLines(data: ChartData, description: string): string {
  const plot = planPlot(
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
  return framePlot(plot, lines.join(""), description);
}

/** Height of the bars of `drawStrip`. */
export const STRIP_HEIGHT = 28;
/** About the width of its place, as stretching distorts the corners of bars. */
const STRIP_WIDTH = 480;

/** A row of bars without axes, stretched to the width of its place. */
export function drawStrip(bars: readonly Bar[], description: string): string {
  const step = STRIP_WIDTH / Math.max(1, bars.length);
  return `<svg class="bars" viewBox="0 0 ${round(STRIP_WIDTH - step / 4)} ${STRIP_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${escaped(description)}">${drawBars(bars, step, STRIP_HEIGHT, 3)}</svg>`;
}

/** A row of bars on a base line, in fixed proportions. */
export function drawBarChart(
  bars: readonly Bar[],
  description: string,
  { width, height }: { readonly width: number; readonly height: number },
): string {
  const ground = height - 1;
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(description)}"><line x1="0" y1="${ground}" x2="${width}" y2="${ground}" stroke="var(--line)"/>${drawBars(bars, width / Math.max(1, bars.length), ground, 2)}</svg>`;
}

/** The used share of a whole, from 0 to 1: a warning from 80 % on. */
export function drawMeter(share: number, description: string): string {
  const used = Math.min(1, Math.max(0, share));
  const look = used >= 1 ? "bad" : used >= 0.8 ? "warn" : "ok";
  return `<svg class="meter ${look}" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="${escaped(description)}"><rect width="100" height="4" fill="var(--none)"/><rect width="${(used * 100).toFixed(1)}" height="4" fill="currentColor"/></svg>`;
}

function drawBars(
  bars: readonly Bar[],
  step: number,
  ground: number,
  radius: number,
): string {
  return bars
    .map(({ height, colour, title }, at) =>
      height <= 0
        ? ""
        : `<rect x="${round(at * step)}" y="${round(ground - height)}" width="${round(Math.max(1, step * 0.75))}" height="${round(height)}" rx="${radius}" fill="var(--${colour})"><title>${escaped(title)}</title></rect>`,
    )
    .join("");
}

/** The axes of a chart and where values lie between them. */
interface Plot {
  readonly axes: string;
  /** Width of one label's place. */
  readonly step: number;
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
}

function planPlot(
  { labels, label, scale = "linear" }: ChartData,
  heights: readonly number[],
): Plot {
  const axis = scale === "log" ? logAxis(heights) : linearAxis(heights);
  const ticks = axis.ticks.map((value) => ({ value, text: label(value) }));
  const names = labels.map((text) => text.split(",")[0] ?? text);
  const left = 12 + LETTER_WIDTH * longest(ticks.map(({ text }) => text));
  const step = (WIDTH - left - RIGHT) / Math.max(1, names.length);
  const x = (at: number) => left + (at + 0.5) * step;
  const y = (value: number) => BOTTOM - axis.share(value) * (BOTTOM - TOP);
  const every = Math.ceil((LETTER_WIDTH * longest(names) + 14) / step);
  const axes = [
    ...ticks.map(
      ({ value, text }) =>
        `<line x1="${left.toFixed(1)}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}" stroke="var(--line)"/><text x="${(left - 6).toFixed(1)}" y="${y(value) + 5}" text-anchor="end">${escaped(text)}</text>`,
    ),
    ...names.flatMap((text, at) =>
      at % every === 0
        ? [
            `<text x="${Math.min(x(at), WIDTH - RIGHT - (LETTER_WIDTH * text.length) / 2).toFixed(1)}" y="232" text-anchor="middle">${escaped(text)}</text>`,
          ]
        : [],
    ),
  ];
  return { axes: axes.join(""), step, x, y };
}

interface Axis {
  readonly ticks: readonly number[];
  /** Where a value lies between the ends of the axis, from 0 to 1. */
  readonly share: (value: number) => number;
}

function linearAxis(values: readonly number[]): Axis {
  const peak = roundUp(Math.max(0, ...values));
  return { ticks: [0, peak / 2, peak], share: (value) => value / peak };
}

function logAxis(values: readonly number[]): Axis {
  const powers = values
    .filter((value) => value > 0)
    .map((value) => Math.log10(value));
  const from = Math.floor(Math.min(...powers, Infinity));
  const low = Number.isFinite(from) ? from : 0;
  const high = Math.max(low + 1, Math.ceil(Math.max(...powers, low)));
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at)),
    share: (value) => (Math.log10(value) - low) / (high - low),
  };
}

function framePlot(plot: Plot, content: string, description: string): string {
  return `<svg viewBox="0 26 ${WIDTH} 212" role="img" aria-label="${escaped(description)}" fill="var(--soft)" font-size="15">${plot.axes}${content}</svg>`;
}

/** Runs of known values, each with its position. */
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

/** The next round number whose half is round, too; 1 for 0. */
function roundUp(value: number): number {
  if (value <= 0) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  const factor =
    [1, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value) ?? 10;
  return factor * power;
}

function longest(texts: readonly string[]): number {
  return Math.max(1, ...texts.map(({ length }) => length));
}

function round(value: number): number {
  return Number(value.toFixed(2));
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll('"', "&quot;");
}
