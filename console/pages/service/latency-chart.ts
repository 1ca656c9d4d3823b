import type { CheckStep } from "../../../supervisor/checks/check-reports.ts";
import { drawLines } from "../../../core/charts.ts";
import { drawHours } from "../status/hour-bars.ts";
import { clock, moment, percent } from "../../../core/words.ts";
import type { Span } from "./spans.ts";

/** How fast a check's service answered and when it was up, drawn and as the table of the same numbers. */
export function drawLatencies(
  steps: readonly CheckStep[],
  { label, hours }: Span,
  timeZone: string,
) {
  const tell = (at: number) =>
    hours === 1 ? clock(at, timeZone) : moment(at, timeZone);
  const short = (at: number) => tell(at).replace(/, .*$/, "");
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
    title: `Milliseconds to answer, last ${label}`,
    bars: drawHours(
      steps.map((step) => ({ ...step, hour: step.from })),
      { title: `last ${label}`, tell },
    ),
    svg: steps.some(({ p95 }) => p95 !== null)
      ? drawLines(
          {
            labels: steps.map(({ from }) => short(from)),
            series,
            label: (ms) => (ms === 0 ? "0" : `${ms} ms`),
          },
          `milliseconds to answer in the last ${label}, half of all looks and 95 of 100; the numbers are in the table below`,
        )
      : null,
    series: series.map(({ name, colour }) => ({ name, colour })),
    rows: steps.map((step) => ({
      from: tell(step.from),
      up: step.availability === null ? "–" : percent(step.availability / 100),
      p50: step.p50 ?? "–",
      p95: step.p95 ?? "–",
      looks: step.looks,
      failures: step.failures,
    })),
  };
}
