import { expect, test } from "vitest";
import { exposeMetrics } from "./exposition.ts";
import {
  supervisorMetrics,
  type SupervisorFacts,
} from "./supervisor-metrics.ts";

const facts: SupervisorFacts = {
  status: {
    verdict: "Notes is down.",
    ok: false,
    phase: "running",
    at: 5000,
    supervisor: {
      pid: 1,
      address: "http://127.0.0.1:4080",
      since: 1000,
      home: null,
      release: null,
      memoryBytes: 7,
    },
    services: [
      {
        name: "gateway",
        state: "running",
        since: 0,
        pid: 2,
        address: "",
        port: 1,
        adopted: false,
        tookMs: null,
        restarts: 3,
        reason: null,
        stats: { memoryBytes: 9, cpuSeconds: 1.5 },
      },
    ],
    checks: [
      {
        name: 'no"tes',
        kind: "http",
        state: "down",
        since: 0,
        inhibitedBy: null,
        flapping: false,
        latest: {
          ok: false,
          level: "down",
          latencyMs: 250,
          text: "answered 500",
          at: 1,
          measures: { free_percent: 12 },
        },
        healing: null,
        note: null,
        service: null,
      },
    ],
    attention: [],
    notices: [],
    offsite: null,
  },
  alarms: [
    {
      fingerprint: "a",
      level: "down",
      subject: "notes",
      text: "",
      command: "",
      since: 0,
      silence: null,
    },
  ],
  sinks: [
    { name: "phone", waiting: 2, deliveredAt: null, trouble: "answered 500" },
  ],
  jobs: [],
  cpuSeconds: 0.25,
};

const expose = async () =>
  (await exposeMetrics(supervisorMetrics(facts))).text.trimEnd().split("\n");

test("the state is exposed in Prometheus' text format", async () => {
  const lines = await expose();
  expect(lines).toContain("hearth_healthy 0");
  expect(lines).toContain("hearth_well 0");
  expect(lines).toContain('hearth_check_up{check="no\\"tes",kind="http"} 0');
  expect(lines).toContain(
    'hearth_check_state{check="no\\"tes",state="down"} 1',
  );
  expect(lines).toContain('hearth_check_state{check="no\\"tes",state="up"} 0');
  expect(lines).toContain(
    'hearth_check_latency_seconds{check="no\\"tes"} 0.25',
  );
  expect(lines).toContain(
    'hearth_check_measure{check="no\\"tes",measure="free_percent"} 12',
  );
  expect(lines).toContain("# TYPE hearth_service_restarts_total counter");
  expect(lines).toContain('hearth_service_restarts_total{service="gateway"} 3');
  expect(lines).toContain('hearth_alarms{level="down",silenced="false"} 1');
  expect(lines).toContain('hearth_alert_messages_waiting{sink="phone"} 2');
  expect(lines).toContain("process_cpu_seconds_total 0.25");
  expect(lines.some((line) => line.includes("hearth_job"))).toBe(false);
});

test("names and labels are unchanged, because dashboards depend on them", async () => {
  const samples = (await expose()).filter((line) => /^[a-z]/.test(line));
  const names = samples.map((line) =>
    line.replace(/="(?:\\.|[^"\\])*"/g, "").replace(/ .*/, ""),
  );
  expect([...new Set(names)]).toEqual([
    "hearth_healthy",
    "hearth_well",
    "hearth_check_up{check,kind}",
    "hearth_check_state{check,state}",
    "hearth_check_latency_seconds{check}",
    "hearth_check_measure{check,measure}",
    "hearth_service_up{service}",
    "hearth_service_restarts_total{service}",
    "hearth_service_memory_bytes{service}",
    "hearth_service_cpu_seconds_total{service}",
    "hearth_alarms{level,silenced}",
    "hearth_alert_sink_up{sink}",
    "hearth_alert_messages_waiting{sink}",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "hearth_log_lines_dropped_total",
    "process_cpu_seconds_total",
  ]);
});

test("every line is empty, a comment or a sample, and the text ends with a line end", async () => {
  const { text } = await exposeMetrics(supervisorMetrics(facts));
  expect(text.endsWith("\n")).toBe(true);
  for (const line of text.trimEnd().split("\n")) {
    expect(line).toMatch(
      /^(|# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? [\d.e+-]+)$/,
    );
  }
});
