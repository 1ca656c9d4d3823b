import type { ModelHistory } from "../../../supervisor/gateway/model-statistics.ts";
import {
  chartOf,
  type ChartView,
} from "../../../supervisor/reports/page-parts.ts";
import {
  drawColumns,
  drawLines,
  type ChartData,
} from "../../../core/charts.ts";
import { grouped, latency, moment } from "../../../core/words.ts";
import type { Span } from "../service/spans.ts";

type Series = ChartData["series"];
type Step = ModelHistory["data"][number];

/** Calls, latency and tokens per second of one model, each as a chart and as a table; none without calls. */
export function drawHistory(
  { data, total }: ModelHistory,
  { label, hours }: Span,
  timeZone: string,
): readonly ChartView[] {
  if (total.requests === 0) {
    return [];
  }
  const from = data.map((step) => moment(Date.parse(step.from), timeZone));
  const chart = (
    title: string,
    draw: typeof drawLines,
    series: Series,
    write: (value: number) => string,
  ): ChartView => {
    const view = chartOf(
      `${title}, last ${label}`,
      "From",
      draw,
      {
        // "10:00" of a day, "9 Nov" of a month.
        labels: from.map((text) => text.split(", ")[hours === 1 ? 1 : 0] ?? ""),
        series,
        label: (value) => (value === 0 ? "0" : write(value)),
      },
      write,
    );
    const rows = view.rows.map((row, at) => ({
      ...row,
      label: from[at] ?? "",
    }));
    return { ...view, rows };
  };
  return [
    chart("Calls", drawColumns, callSeries(data), grouped),
    chart("Latency", drawLines, latencySeries(data), latency),
    chart("Tokens per second", drawLines, rateSeries(data), writeRate),
  ];
}

export function writeRate(tokens: number): string {
  return grouped(tokens, tokens < 10 ? 1 : 0);
}

function callSeries(data: readonly Step[]): Series {
  return [
    {
      name: "answered",
      colour: "two",
      values: data.map(
        ({ requests, failed, interrupted }) => requests - failed - interrupted,
      ),
    },
    {
      name: "failed",
      colour: "bad",
      values: data.map(({ failed }) => failed),
    },
    {
      name: "interrupted",
      colour: "warn",
      values: data.map(({ interrupted }) => interrupted),
    },
  ];
}

function latencySeries(data: readonly Step[]): Series {
  return [
    {
      name: "p50",
      colour: "two",
      values: data.map(({ latency_p50_ms: ms }) => ms),
    },
    {
      name: "p95",
      colour: "one",
      values: data.map(({ latency_p95_ms: ms }) => ms),
    },
  ];
}

function rateSeries(data: readonly Step[]): Series {
  return [
    {
      name: "tokens per second",
      colour: "two",
      values: data.map(({ tokens_per_second: rate }) => rate),
    },
  ];
}
