import { BarChart, LineChart } from "echarts/charts";
import { GridComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([BarChart, LineChart, GridComponent, SVGRenderer]);

/** Numbers over time, each series in a colour of the stylesheet. */
export interface ChartData {
  readonly labels: readonly string[];
  readonly series: readonly {
    readonly name: string;
    readonly colour: Colour;
    readonly values: readonly (number | null)[];
  }[];
  readonly label: (value: number) => string;
}

/**
 * The library draws with plain colours; they stand for the stylesheet's, which differ by day and by night. Each of them occurs
 * nowhere else.
 */
const standIns = {
  one: "#010101",
  two: "#020202",
  three: "#030303",
  four: "#040404",
  none: "#050505",
  soft: "#060606",
  line: "#070707",
  ok: "#080808",
} as const;
export type Colour = keyof typeof standIns;

/** Small, so that its letters can be read where it is scaled down to a phone. */
const size = { width: 480, height: 240 };
const FONT_SIZE = 15;

/** Stacked columns as SVG without colours, fonts or scripts of its own. */
export function drawColumns(data: ChartData, description: string): string {
  return draw(data, description, (values, colour) => ({
    type: "bar",
    stack: "all",
    barCategoryGap: "25%",
    data: [...values],
    itemStyle: { color: standIns[colour] },
  }));
}

export function drawLines(data: ChartData, description: string): string {
  return draw(data, description, (values, colour, index) => ({
    type: "line",
    symbol: "none",
    data: [...values],
    lineStyle: {
      color: standIns[colour],
      width: 2.5,
      // Colour is never alone.
      type: index === 0 ? "solid" : "dashed",
    },
  }));
}

function draw(
  { labels, series, label }: ChartData,
  description: string,
  toSeries: (
    values: readonly (number | null)[],
    colour: Colour,
    index: number,
  ) => object,
): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, ...size });
  chart.setOption({
    animation: false,
    textStyle: { fontFamily: "inherit" },
    // Room for letters that are wider than the library thinks.
    grid: { left: 20, right: 30, top: 14, bottom: 6 },
    xAxis: {
      type: "category",
      data: [...labels],
      axisTick: { show: false },
      axisLine: { lineStyle: { color: standIns.line } },
      axisLabel: {
        color: standIns.soft,
        fontSize: FONT_SIZE,
        hideOverlap: true,
        // Of "9 Nov, 00:00" the day; the table has all of it.
        formatter: (label: string) => label.split(",")[0] ?? label,
      },
    },
    yAxis: {
      type: "value",
      splitNumber: 3,
      splitLine: { lineStyle: { color: standIns.line } },
      axisLabel: {
        color: standIns.soft,
        fontSize: FONT_SIZE,
        formatter: label,
      },
    },
    series: series.map(({ values, colour }, index) => ({
      ...toSeries(values, colour, index),
      silent: true,
      emphasis: { disabled: true },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return dress(svg, description);
}

function dress(svg: string, description: string): string {
  const open = `<svg viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${attribute(description)}">`;
  const coloured = Object.entries(standIns).reduce(
    (text, [name, colour]) => text.replaceAll(colour, `var(--${name})`),
    svg.replace(/^<svg[^>]*>/, open),
  );
  // What a script would need, of which the page has none; and clips, whose ids the charts of a page would share.
  return coloured
    .replace(/<style[\s\S]*<\/style>/, "")
    .replace(/<defs[\s\S]*<\/defs>/, "")
    .replace(
      / style="font-size:(\d+)px;font-family:inherit;"/g,
      ' font-size="$1"',
    )
    .replace(
      / (?:ecmeta_\w+|class|clip-path|pointer-events|xml:space)="[^"]*"/g,
      "",
    );
}

function attribute(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;");
}
