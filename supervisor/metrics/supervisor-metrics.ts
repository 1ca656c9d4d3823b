import { droppedLogLines } from "../../core/log-output.ts";
import type { ActiveAlarm } from "../alerts/alerting.ts";
import type { SinkState } from "../alerts/dispatcher.ts";
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

/** Metrics of the supervisor and of what it watches. Times in seconds since 1970. */
export function supervisorMetrics(facts: SupervisorFacts): readonly Metric[] {
  const { status } = facts;
  return [
    gauge("hearth_healthy", "1 while everything is known to be up.", [
      { value: status.ok ? 1 : 0 },
    ]),
    gauge(
      "hearth_well",
      "Deprecated, removed in the next release: use hearth_healthy.",
      [{ value: status.ok ? 1 : 0 }],
    ),
    ...ofChecks(status),
    ...ofServices(status),
    ...ofAlerts(facts),
    ...ofJobs(facts.jobs),
    gauge("process_resident_memory_bytes", "Memory of the supervisor itself.", [
      { value: status.supervisor.memoryBytes },
    ]),
    gauge("process_start_time_seconds", "Start time of the supervisor.", [
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
      help: "CPU time of the supervisor itself.",
      type: "counter",
      samples: [{ value: facts.cpuSeconds }],
    },
  ];
}

function ofChecks({ checks }: Status): readonly Metric[] {
  return [
    gauge(
      "hearth_check_up",
      "1 while a check is up, 0 while it is down; omitted in other states.",
      checks.flatMap(({ name, kind, state }) =>
        state === "up" || state === "down"
          ? [{ labels: { check: name, kind }, value: state === "up" ? 1 : 0 }]
          : [],
      ),
    ),
    gauge(
      "hearth_check_state",
      "1 for the current state of a check, 0 for the other states.",
      checks.flatMap((check) =>
        STATES.map((state) => ({
          labels: { check: check.name, state },
          value: check.state === state ? 1 : 0,
        })),
      ),
    ),
    gauge(
      "hearth_check_latency_seconds",
      "Latency of the latest probe.",
      checks.flatMap(({ name, latest }) =>
        latest === null
          ? []
          : [{ labels: { check: name }, value: latest.latencyMs / 1000 }],
      ),
    ),
    gauge(
      "hearth_check_measure",
      "Measurements of the latest probe, such as connections in use or free disk space.",
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
      "1 while a service is running and was healthy after its start.",
      each(({ state }) => (state === "running" ? 1 : 0)),
    ),
    {
      name: "hearth_service_restarts_total",
      help: "Restarts of a service.",
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
      help: "CPU time of a service.",
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
      "Active alarms, by level and whether silenced.",
      (["down", "warning"] as const).flatMap((level) =>
        [false, true].map((silent) => ({
          labels: { level, silenced: String(silent) },
          value: count(level, silent),
        })),
      ),
    ),
    gauge(
      "hearth_alert_sink_up",
      "1 while an alert channel works.",
      sinks.map(({ name, trouble }) => ({
        labels: { sink: name },
        value: trouble === null ? 1 : 0,
      })),
    ),
    gauge(
      "hearth_alert_messages_waiting",
      "Messages waiting for delivery.",
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
      "1 while a job is running.",
      each(({ running }) => (running === null ? 0 : 1)),
    ),
    gauge(
      "hearth_job_last_ok",
      "1 if the last run of a job succeeded or was skipped, else 0.",
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
      "End time of the last run of a job.",
      each(({ last }) => (last?.endedAt == null ? null : last.endedAt / 1000)),
    ),
    gauge(
      "hearth_job_next_seconds",
      "Time of the next run of a job.",
      each(({ nextAt }) => (nextAt === null ? null : nextAt / 1000)),
    ),
  ];
}

function gauge(name: string, help: string, samples: readonly Sample[]): Metric {
  return { name, help, type: "gauge", samples };
}
