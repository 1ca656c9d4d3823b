import { sizeWords } from "../../core/size.ts";
import type { DatabaseSync } from "node:sqlite";
import {
  availabilities,
  checkRecords,
  hourlyMeasure,
  type CheckRecord,
} from "../checks/check-reports.ts";
import { incidents, type Incident } from "../checks/incidents.ts";
import type { Check } from "../checks/config.ts";
import type { JobView } from "../jobs/runner.ts";
import type { Attention } from "../status.ts";
import { addDays, beginningOf, daysBetween, type Period } from "./period.ts";

export interface HealthReport {
  readonly kind: "health";
  /** ISO text. */
  readonly madeAt: string;
  readonly timeZone: string;
  readonly period: Period;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly until: number;
  /** Problems that need a person now. */
  readonly attention: readonly Pick<Attention, "level" | "text" | "command">[];
  readonly checks: readonly CheckHealth[];
  /** Number of days per element of `checks[].steps`. */
  readonly daysAStep: number;
  readonly incidents: readonly Incident[];
  readonly restarts: readonly {
    readonly at: number;
    readonly service: string;
    /** restart: after the service ended; heal: because of a check; restart-asked: by a person. */
    readonly act: string;
    readonly reason: string;
  }[];
  /** Hourly measurements of disk, memory and databases. */
  readonly trends: readonly Trend[];
  readonly notesStore: readonly NotesFigure[];
  readonly jobs: readonly JobHealth[];
  readonly certificates: readonly {
    readonly check: string;
    readonly daysLeft: number;
  }[];
}

export type CheckHealth = CheckRecord & {
  readonly incidents: number;
  readonly longestMs: number;
  /** Availability of each step of the period, in percent; null without counted time. */
  readonly steps: readonly (number | null)[];
};

export interface Trend {
  readonly check: string;
  readonly measure: string;
  readonly unit: "bytes" | "percent";
  readonly points: readonly { readonly at: number; readonly value: number }[];
  readonly first: number;
  readonly last: number;
}

/** A measurement of the notes store with its typical value. */
interface NotesFigure {
  readonly name: string;
  readonly seen: string;
  readonly typical: string;
  readonly within: boolean;
}

interface JobHealth {
  readonly name: string;
  readonly status: string;
  readonly text: string;
  /** Milliseconds since 1970; null if it never ran. */
  readonly at: number | null;
}

/** Bars must be visible on a phone. */
const MAX_STEPS = 62;

/** Jobs that protect against the loss of a disk or errors in the ledger. */
const WATCHED_JOBS = [
  "postgres-backup",
  "notes-backup",
  "backup-copy",
  "offsite-copy",
  "restore-drill",
  "notes-drill",
  "offsite-drill",
  "notes-offsite-drill",
  "ledger-check",
  "compaction",
];

const trendOf: Readonly<
  Record<string, readonly (readonly [string, Trend["unit"]])[]>
> = {
  disk: [["free_bytes", "bytes"]],
  container: [["memory_bytes", "bytes"]],
  postgres: [
    ["database_bytes", "bytes"],
    ["connections_percent", "percent"],
  ],
  redis: [["memory_percent", "percent"]],
  couchdb: [["file_bytes", "bytes"]],
};

/** Reads only the history of the supervisor, so no other service has to run. */
export function readHealthReport(parts: {
  readonly db: DatabaseSync;
  readonly checks: readonly Check[];
  readonly jobs: readonly JobView[];
  readonly attention: readonly Attention[];
  readonly period: Period;
  readonly timeZone: string;
  readonly now: number;
}): HealthReport {
  const { db, period, timeZone, now } = parts;
  const from = beginningOf(period.from, timeZone);
  const until = Math.min(now, beginningOf(addDays(period.until, 1), timeZone));
  const down = incidents(db, from, until);
  const daysAStep = Math.ceil(
    (daysBetween(period.from, period.until) + 1) / MAX_STEPS,
  );
  const steps = stepBounds(period, daysAStep, timeZone).map(([begin, end]) =>
    begin >= until
      ? new Map<string, null>()
      : availabilities(db, begin, Math.min(until, end)),
  );
  const trends = readTrends(db, parts.checks, from, until);
  return {
    kind: "health",
    madeAt: new Date(now).toISOString(),
    timeZone,
    period,
    from,
    until,
    trends,
    daysAStep,
    attention: parts.attention.map(({ level, text, command }) => ({
      level,
      text,
      command,
    })),
    checks: checkRecords(db, from, until).map((record) =>
      healthOf(record, down, steps),
    ),
    incidents: down,
    restarts: readRestarts(db, from, until),
    notesStore: notesFigures(db, parts.checks, trends, from, until),
    jobs: WATCHED_JOBS.flatMap((name) => jobHealth(name, parts.jobs)),
    certificates: parts.checks
      .filter(({ kind }) => kind === "certificate")
      .flatMap(({ name }) => {
        const seen = hourlyMeasure(
          db,
          { check: name, measure: "days_left" },
          from,
          until,
        ).at(-1);
        return seen === undefined
          ? []
          : [{ check: name, daysLeft: seen.value }];
      }),
  };
}

/** First and last moment of each step of a period. */
function stepBounds(
  { from, until }: Period,
  daysAStep: number,
  timeZone: string,
): readonly (readonly [number, number])[] {
  const bounds: (readonly [number, number])[] = [];
  for (let day = from; day <= until;) {
    const next = addDays(day, daysAStep);
    bounds.push([beginningOf(day, timeZone), beginningOf(next, timeZone)]);
    day = next;
  }
  return bounds;
}

function healthOf(
  record: CheckRecord,
  down: readonly Incident[],
  steps: readonly ReadonlyMap<string, number | null>[],
): CheckHealth {
  const own = down.filter(({ check }) => check === record.name);
  return {
    ...record,
    incidents: own.length,
    longestMs: Math.max(0, ...own.map(({ durationMs }) => durationMs)),
    steps: steps.map((step) => step.get(record.name) ?? null),
  };
}

function readRestarts(
  db: DatabaseSync,
  from: number,
  until: number,
): HealthReport["restarts"] {
  return db
    .prepare(
      `SELECT at, name, to_state, reason FROM events
         WHERE kind = 'act' AND to_state IN ('restart', 'heal', 'restart-asked') AND at >= ? AND at < ? ORDER BY at DESC`,
    )
    .all(from, until)
    .map((row) => ({
      at: Number(row["at"]),
      service: String(row["name"]),
      act: String(row["to_state"]),
      reason: row["reason"] === null ? "" : String(row["reason"]),
    }));
}

function readTrends(
  db: DatabaseSync,
  checks: readonly Check[],
  from: number,
  until: number,
): readonly Trend[] {
  return checks.flatMap(({ name, kind }) =>
    (trendOf[kind] ?? []).flatMap(([measure, unit]) => {
      const points = hourlyMeasure(db, { check: name, measure }, from, until);
      const [first, last] = [points[0], points.at(-1)];
      return first === undefined || last === undefined
        ? []
        : [
            {
              check: name,
              measure,
              unit,
              points,
              first: first.value,
              last: last.value,
            },
          ];
    }),
  );
}

const MIB = 1024 * 1024;

/** Measurements of the notes store with values that its documentation calls typical for a vault of texts. */
function notesFigures(
  db: DatabaseSync,
  checks: readonly Check[],
  trends: readonly Trend[],
  from: number,
  until: number,
): readonly NotesFigure[] {
  const container = checks.find(
    (check) => check.kind === "container" && check.container === "notes",
  )?.name;
  const couch = checks.find(({ kind }) => kind === "couchdb")?.name;
  const memory = trends.find(
    ({ check, measure }) => check === container && measure === "memory_bytes",
  );
  const seconds =
    container === undefined
      ? []
      : hourlyMeasure(
          db,
          { check: container, measure: "cpu_seconds" },
          from,
          until,
        );
  const disk = trends.find(({ check }) => check === couch);
  return [
    ...(memory === undefined ? [] : [memoryFigure(memory)]),
    ...cpuFigures(seconds),
    ...(disk === undefined ? [] : [diskFigure(disk)]),
  ];
}

function memoryFigure({ points }: Trend): NotesFigure {
  const max = Math.max(...points.map(({ value }) => value));
  return {
    name: "memory, maximum",
    seen: `${Math.round(max / MIB)} MiB`,
    typical: "500 MB to 1 GB",
    within: max <= 1024 * MIB,
  };
}

/** From the CPU seconds at the end of each hour. */
function cpuFigures(
  seconds: ReturnType<typeof hourlyMeasure>,
): readonly NotesFigure[] {
  const shares = seconds.flatMap(({ at, value }, index) => {
    const before = seconds[index - 1];
    // A restart resets the counter.
    return before === undefined || value < before.value
      ? []
      : [(100 * (value - before.value)) / ((at - before.at) / 1000)];
  });
  if (shares.length === 0) {
    return [];
  }
  const median = shares.toSorted((a, b) => a - b)[shares.length >> 1] ?? 0;
  const max = Math.max(...shares);
  return [
    {
      name: "CPU, median and maximum of an hour",
      seen: `${median.toFixed(1)} % and ${max.toFixed(1)} %`,
      typical: "under 2 % idle, under 10 % during sync",
      within: median < 2 && max < 10,
    },
  ];
}

function diskFigure({ last }: Trend): NotesFigure {
  return {
    name: "disk",
    seen: sizeWords(last),
    typical: "100 to 500 MB for a vault of texts",
    within: last <= 500e6,
  };
}

function jobHealth(
  name: string,
  jobs: readonly JobView[],
): readonly JobHealth[] {
  const job = jobs.find((each) => each.name === name);
  if (job === undefined) {
    return [];
  }
  const { last } = job;
  return [
    last === null
      ? {
          name,
          status: "never",
          at: null,
          text: job.nextAt === null ? "runs only on demand" : "not due yet",
        }
      : { name, status: last.status, text: last.text, at: last.startedAt },
  ];
}
