import { lastedInWords } from "../checks/incident-words.ts";
import { inWords } from "../../core/duration.ts";
import { sizeWords } from "../../core/size.ts";
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

interface HealthPage {
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

/** The values of the template `health`. */
export function viewHealth(report: HealthReport): HealthPage {
  const { timeZone } = report;
  return {
    daysAStep: report.daysAStep,
    checks: report.checks.map((check) => viewCheck(check, report)),
    charts: report.trends.map((trend) => trendChart(trend, timeZone)),
    tables: [
      latencyTable(report),
      incidentTable(report),
      restartTable(report),
      jobTable(report),
      notesTable(report),
      certificateTable(report),
    ].filter(({ rows }) => rows.length > 0),
  };
}

function latencyTable({ checks }: HealthReport): TableView {
  const latency = (ms: number | null) => (ms === null ? "—" : `${ms} ms`);
  const duration = (ms: number) => (ms === 0 ? "0" : inWords(ms));
  return tableOf(
    "Latency and downtime",
    ["Check", "#p50", "#p95", "#p99", "#Down", "#In maintenance", "#Longest"],
    checks.map((check) => [
      check.name,
      ...[check.p50, check.p95, check.p99].map(latency),
      ...[check.downMs, check.apartMs, check.longestMs].map(duration),
    ]),
  );
}

function incidentTable({ incidents, timeZone }: HealthReport): TableView {
  return tableOf(
    "Incidents",
    ["Check", "From", "Duration", "Reason"],
    incidents.map((incident) => [
      incident.check,
      moment(incident.from, timeZone),
      lastedInWords(incident),
      incident.reason ?? "",
    ]),
  );
}

const RESTART_KINDS: Readonly<Record<string, string>> = {
  restart: "had ended",
  heal: "healed",
  "restart-asked": "by an operator",
};

function restartTable({ restarts, timeZone }: HealthReport): TableView {
  return tableOf(
    "Restarts",
    ["Service", "At", "Reason"],
    restarts.map(({ at, service, act, reason }) => [
      service,
      moment(at, timeZone),
      `${RESTART_KINDS[act] ?? act}: ${reason}`,
    ]),
  );
}

function jobTable({ jobs, timeZone }: HealthReport): TableView {
  return tableOf(
    "Backups, drills, compaction",
    ["Job", "Last", "Result"],
    jobs.map(({ name, status, text, at }) => [
      name,
      at === null ? status : `${status}, ${moment(at, timeZone)}`,
      text,
    ]),
  );
}

function notesTable({ notesStore }: HealthReport): TableView {
  return tableOf(
    "Notes store, compared with typical values",
    ["Figure", "Measured", "Typical"],
    notesStore.map(({ name, seen, typical, within }) => [
      name,
      `${seen}${within ? "" : " ▲"}`,
      typical,
    ]),
  );
}

function certificateTable({ certificates }: HealthReport): TableView {
  return tableOf(
    "Certificates",
    ["Check", "#Days left"],
    certificates.map(({ check, daysLeft }) => [check, String(daysLeft)]),
  );
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

/** The height scales with half of the lost time, so that short outages are visible. */
function barOf(availability: number | null, day: string, days: number): Bar {
  const title = `${days === 1 ? "" : `${days} days from `}${inFull(day)}: ${availability === null ? "no data" : percent(availability / 100)}`;
  if (availability === null) {
    return { title, colour: "none", height: 6 };
  }
  const colour =
    availability === 100 ? "calm" : availability >= 99 ? "warn" : "bad";
  const height = Math.max(8, (STRIP_HEIGHT * (50 + availability / 2)) / 100);
  return { title, colour, height };
}

const MEASURES: Readonly<Record<string, string>> = {
  free_bytes: "free",
  memory_bytes: "memory",
  database_bytes: "size",
  file_bytes: "size",
  connections_percent: "connections in use",
  memory_percent: "memory in use",
};

const MAX_POINTS = 60;

function trendChart(
  { check, measure, unit, points }: Trend,
  timeZone: string,
): ChartView {
  const every = Math.ceil(points.length / MAX_POINTS);
  const shown = points.filter(
    (_, at) => at % every === 0 || at === points.length - 1,
  );
  const write =
    unit === "percent"
      ? (value: number) => `${value} %`
      : measure === "memory_bytes"
        ? inMemory
        : sizeWords;
  return chartOf(
    `${check}: ${MEASURES[measure] ?? measure}`,
    "hour",
    drawLines,
    {
      labels: shown.map(({ at }) => moment(at, timeZone)),
      series: [
        {
          name: MEASURES[measure] ?? measure,
          colour: "two",
          values: shown.map(({ value }) => value),
        },
      ],
      label: write,
    },
    write,
  );
}

function inMemory(bytes: number): string {
  const mib = bytes / 1024 / 1024;
  return mib >= 1024
    ? `${Number((mib / 1024).toPrecision(3))} GiB`
    : `${Number(mib.toPrecision(3))} MiB`;
}
