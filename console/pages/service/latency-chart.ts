import type { CheckStep } from "../../../supervisor/checks/check-reports.ts";
import { drawLines } from "../../../core/charts.ts";
import { drawHours } from "../status/hour-bars.ts";
import { clock, latency, moment, percent } from "../../../core/words.ts";
import type { Span } from "./spans.ts";

/** Uptime of a check and, where `timed`, its response times, as a chart and as a table. */
export function drawLatencies(
  steps: readonly CheckStep[],
  { label, hours }: Span,
  timeZone: string,
  timed: boolean,
) {
  const format = (at: number) =>
    hours === 1 ? clock(at, timeZone) : moment(at, timeZone);
  const short = (at: number) => format(at).replace(/, .*$/, "");
  const series = [
    {
      name: "p50",
      colour: "two" as const,
      values: steps.map(({ p50 }) => p50),
    },
    {
      name: "p95",
      colour: "one" as const,
      values: steps.map(({ p95 }) => p95),
    },
  ];
  return {
    timed,
    title: timed ? `Response time, last ${label}` : `Last ${label}`,
    bars: drawHours(
      steps.map((step) => ({ ...step, hour: step.from })),
      { title: `last ${label}`, format },
    ),
    svg:
      timed && steps.some(({ p95 }) => p95 !== null)
        ? drawLines(
            {
              labels: steps.map(({ from }) => short(from)),
              series,
              label: (ms) => (ms === 0 ? "0" : latency(ms)),
            },
            `response time in the last ${label}, median and 95th percentile; the numbers are in the table below`,
          )
        : null,
    series: series.map(({ name, colour }) => ({ name, colour })),
    rows: steps.map((step) => ({
      from: format(step.from),
      up: step.availability === null ? "–" : percent(step.availability / 100),
      p50: step.p50 === null ? "–" : latency(step.p50),
      p95: step.p95 === null ? "–" : latency(step.p95),
      looks: step.looks,
      failures: step.failures,
    })),
  };
}
