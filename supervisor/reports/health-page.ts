import { inWords } from "../../core/duration.ts";
import { moment, percent } from "../../core/words.ts";
import type { CheckHealth, HealthReport, Trend } from "./health-report.ts";
import {
  drawLines,
  drawStrip,
  STRIP_HEIGHT,
  type Bar,
} from "../../core/charts.ts";
import {
  chartOf,
  tableOf,
  type ChartView,
  type TableView,
} from "./page-parts.ts";
import { addDays, inFull } from "./period.ts";

export interface HealthPage {
  readonly daysAStep: number;
  readonly checks: readonly {
    readonly name: string;
    readonly note: string;
    readonly availability: string;
    readonly latency: string;
    readonly bars: string;
  }[];
  readonly tables: readonly TableView[];
  readonly charts: readonly ChartView[];
}

/** What the template `health` shows. */
export function viewHealth(report: HealthReport): HealthPage {
  const { timeZone } = report;
  const milliseconds = (ms: number | null) => (ms === null ? "—" : `${ms} ms`);
  return {
    daysAStep: report.daysAStep,
    checks: report.checks.map((check) => viewCheck(check, report)),
    charts: report.trends.map((trend) => trendChart(trend, timeZone)),
    tables: [
      table(
        "Latency and time down",
        [
          "Check",
          "#p50",
          "#p95",
          "#p99",
          "#Down",
          "#In maintenance",
          "#Longest",
        ],
        report.checks.map((check) => [
          check.name,
          ...[check.p50, check.p95, check.p99].map(milliseconds),
          ...[check.downMs, check.apartMs, check.longestMs].map((ms) =>
            ms === 0 ? "0" : inWords(ms),
          ),
        ]),
      ),
      table(
        "Incidents",
        ["Check", "From", "Lasted", "What was seen"],
        report.incidents.map(({ check, from, until, durationMs, reason }) => [
          check,
          moment(from, timeZone),
          `${inWords(durationMs)}${until === null ? ", lasts" : ""}`,
          reason ?? "",
        ]),
      ),
      table(
        "Restarts",
        ["Service", "At", "Why"],
        report.restarts.map(({ at, service, act, reason }) => [
          service,
          moment(at, timeZone),
          `${restartWords[act] ?? act}: ${reason}`,
        ]),
      ),
      table(
        "Backups, drills, compaction",
        ["Job", "Last", "How it went"],
        report.jobs.map(({ name, status, text, at }) => [
          name,
          at === null ? status : `${status}, ${moment(at, timeZone)}`,
          text,
        ]),
      ),
      table(
        "The notes store, beside what is typical",
        ["Figure", "Seen", "Typical"],
        report.notesStore.map(({ name, seen, typical, within }) => [
          name,
          `${seen}${within ? "" : " ▲"}`,
          typical,
        ]),
      ),
      table(
        "Certificates",
        ["Check", "#Days left"],
        report.certificates.map(({ check, daysLeft }) => [
          check,
          String(daysLeft),
        ]),
      ),
    ].flatMap((each) => each ?? []),
  };
}

const restartWords: Readonly<Record<string, string>> = {
  restart: "it had ended",
  heal: "healed",
  "restart-asked": "a person said so",
};

function table(
  label: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): TableView | undefined {
  return rows.length === 0 ? undefined : tableOf(label, columns, rows);
}

function viewCheck(
  check: CheckHealth,
  { period, daysAStep }: HealthReport,
): HealthPage["checks"][number] {
  const availability =
    check.availability === null ? "—" : percent(check.availability / 100);
  const incidents =
    check.incidents === 0
      ? "no incident"
      : check.incidents === 1
        ? "1 incident"
        : `${check.incidents} incidents`;
  return {
    name: check.name,
    note: incidents,
    availability,
    latency: check.p95 === null ? "" : `${check.p95} ms`,
    bars: drawStrip(
      check.steps.map((value, at) =>
        barOf(value, addDays(period.from, at * daysAStep), daysAStep),
      ),
      `${check.name}: available ${availability}, ${incidents}`,
    ),
  };
}

/** Half as high as the time that was lost, so that a short outage is seen, too. */
function barOf(availability: number | null, day: string, days: number): Bar {
  const title = `${days === 1 ? "" : `${days} days from `}${inFull(day)}: ${availability === null ? "nothing was seen" : percent(availability / 100)}`;
  if (availability === null) {
    return { title, colour: "none", height: 6 };
  }
  const colour =
    availability === 100 ? "calm" : availability >= 99 ? "warn" : "bad";
  const height = Math.max(8, (STRIP_HEIGHT * (50 + availability / 2)) / 100);
  return { title, colour, height };
}

const measures: Readonly<Record<string, string>> = {
  free_bytes: "free",
  memory_bytes: "memory",
  database_bytes: "size",
  file_bytes: "size",
  connections_percent: "connections in use",
  memory_percent: "memory in use",
};

const MOST_POINTS = 60;

function trendChart(
  { check, measure, unit, points }: Trend,
  timeZone: string,
): ChartView {
  const every = Math.ceil(points.length / MOST_POINTS);
  const shown = points.filter(
    (_, at) => at % every === 0 || at === points.length - 1,
  );
  const write = unit === "percent" ? (value: number) => `${value} %` : inSize;
  return chartOf(
    `${check}: ${measures[measure] ?? measure}`,
    "hour",
    drawLines,
    {
      labels: shown.map(({ at }) => moment(at, timeZone)),
      series: [
        {
          name: measures[measure] ?? measure,
          colour: "two",
          values: shown.map(({ value }) => value),
        },
      ],
      label: write,
    },
    write,
  );
}

function inSize(bytes: number): string {
  const mib = bytes / 1024 / 1024;
  return mib >= 1024
    ? `${Number((mib / 1024).toPrecision(3))} GiB`
    : `${Number(mib.toPrecision(3))} MiB`;
}
