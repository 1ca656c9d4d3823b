import { droppedLogLines } from "../../core/log-output.ts";
import type { ActiveAlarm } from "../alerts/alerting.ts";
import type { SinkState } from "../alerts/courier.ts";
import type { CheckState } from "../checks/state.ts";
import type { JobView } from "../jobs/runner.ts";
import type { Status } from "../status.ts";
import type { Metric, Sample } from "./exposition.ts";

export interface SupervisorFacts {
  readonly status: Status;
  readonly alarms: readonly ActiveAlarm[];
  readonly sinks: readonly SinkState[];
  readonly jobs: readonly JobView[];
  /** Of this process. */
  readonly cpuSeconds: number;
}

const STATES: readonly CheckState[] = [
  "new",
  "up",
  "pending",
  "down",
  "maintenance",
  "paused",
];

/** What this supervisor knows, as metrics. Times in seconds since 1970. */
export function supervisorMetrics(facts: SupervisorFacts): readonly Metric[] {
  const { status } = facts;
  return [
    gauge("hearth_well", "1 while nothing is down and all is known to be up.", [
      { value: status.ok ? 1 : 0 },
    ]),
    ...ofChecks(status),
    ...ofServices(status),
    ...ofAlerts(facts),
    ...ofJobs(facts.jobs),
    gauge("process_resident_memory_bytes", "Memory of the supervisor itself.", [
      { value: status.supervisor.memoryBytes },
    ]),
    gauge("process_start_time_seconds", "When the supervisor began.", [
      { value: status.supervisor.since / 1000 },
    ]),
    {
      name: "hearth_log_lines_dropped_total",
      help: "Log lines of the supervisor that could not be written.",
      type: "counter",
      samples: [{ value: droppedLogLines() }],
    },
    {
      name: "process_cpu_seconds_total",
      help: "Processor time of the supervisor itself.",
      type: "counter",
      samples: [{ value: facts.cpuSeconds }],
    },
  ];
}

function ofChecks({ checks }: Status): readonly Metric[] {
  return [
    gauge(
      "hearth_check_up",
      "1 while a check is up, 0 while it is down; missing while nobody can say.",
      checks.flatMap(({ name, kind, state }) =>
        state === "up" || state === "down"
          ? [{ labels: { check: name, kind }, value: state === "up" ? 1 : 0 }]
          : [],
      ),
    ),
    gauge(
      "hearth_check_state",
      "1 for the state that a check is in, 0 for the others.",
      checks.flatMap((check) =>
        STATES.map((state) => ({
          labels: { check: check.name, state },
          value: check.state === state ? 1 : 0,
        })),
      ),
    ),
    gauge(
      "hearth_check_latency_seconds",
      "How long the last look took.",
      checks.flatMap(({ name, latest }) =>
        latest === null
          ? []
          : [{ labels: { check: name }, value: latest.latencyMs / 1000 }],
      ),
    ),
    gauge(
      "hearth_check_measure",
      "What the last look measured, such as connections in use or free disk.",
      checks.flatMap(({ name, latest }) =>
        Object.entries(latest?.measures ?? {}).map(([measure, value]) => ({
          labels: { check: name, measure },
          value,
        })),
      ),
    ),
  ];
}

function ofServices({ services }: Status): readonly Metric[] {
  const each = (
    value: (service: Status["services"][number]) => number | undefined,
  ): readonly Sample[] =>
    services.flatMap((service) => {
      const known = value(service);
      return known === undefined
        ? []
        : [{ labels: { service: service.name }, value: known }];
    });
  return [
    gauge(
      "hearth_service_up",
      "1 while a service runs and was healthy after its start.",
      each(({ state }) => (state === "running" ? 1 : 0)),
    ),
    {
      name: "hearth_service_restarts_total",
      help: "Times that a service was started again.",
      type: "counter",
      samples: each(({ restarts }) => restarts),
    },
    gauge(
      "hearth_service_memory_bytes",
      "Memory of a service.",
      each(({ stats }) => stats?.memoryBytes),
    ),
    {
      name: "hearth_service_cpu_seconds_total",
      help: "Processor time of a service.",
      type: "counter",
      samples: each(({ stats }) => stats?.cpuSeconds),
    },
  ];
}

function ofAlerts({ alarms, sinks }: SupervisorFacts): readonly Metric[] {
  const count = (level: ActiveAlarm["level"], silent: boolean) =>
    alarms.filter(
      (alarm) => alarm.level === level && (alarm.silence !== null) === silent,
    ).length;
  return [
    gauge(
      "hearth_alarms",
      "What is wrong now, by level and by whether somebody silenced it.",
      (["down", "warning"] as const).flatMap((level) =>
        [false, true].map((silent) => ({
          labels: { level, silenced: String(silent) },
          value: count(level, silent),
        })),
      ),
    ),
    gauge(
      "hearth_alert_sink_up",
      "1 while a way to tell people works.",
      sinks.map(({ name, trouble }) => ({
        labels: { sink: name },
        value: trouble === null ? 1 : 0,
      })),
    ),
    gauge(
      "hearth_alert_messages_waiting",
      "Messages that are yet to be delivered.",
      sinks.map(({ name, waiting }) => ({
        labels: { sink: name },
        value: waiting,
      })),
    ),
  ];
}

function ofJobs(jobs: readonly JobView[]): readonly Metric[] {
  const each = (
    value: (job: JobView) => number | null | undefined,
  ): readonly Sample[] =>
    jobs.flatMap((job) => {
      const known = value(job);
      return known == null ? [] : [{ labels: { job: job.name }, value: known }];
    });
  return [
    gauge(
      "hearth_job_running",
      "1 while a job runs.",
      each(({ running }) => (running === null ? 0 : 1)),
    ),
    gauge(
      "hearth_job_last_ok",
      "1 when the last run of a job was done or had nothing to do, else 0.",
      each(({ last }) =>
        last === null
          ? null
          : last.status === "done" || last.status === "skipped"
            ? 1
            : 0,
      ),
    ),
    gauge(
      "hearth_job_last_end_seconds",
      "When the last run of a job ended.",
      each(({ last }) => (last?.endedAt == null ? null : last.endedAt / 1000)),
    ),
    gauge(
      "hearth_job_next_seconds",
      "When a job runs next.",
      each(({ nextAt }) => (nextAt === null ? null : nextAt / 1000)),
    ),
  ];
}

function gauge(name: string, help: string, samples: readonly Sample[]): Metric {
  return { name, help, type: "gauge", samples };
}
