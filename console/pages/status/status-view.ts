import type { VaultDevice } from "../../../supervisor/context.ts";
import type {
  CheckRecord,
  HourBar,
} from "../../../supervisor/checks/check-reports.ts";
import type { Incident } from "../../../supervisor/checks/incidents.ts";
import type { CheckView } from "../../../supervisor/checks/watched.ts";
import { inWords } from "../../../core/duration.ts";
import type { JobView } from "../../../supervisor/jobs/runner.ts";
import type { Status } from "../../../supervisor/status.ts";
import { lookOfRun } from "../jobs/run-words.ts";
import type { Look } from "../../../core/shapes.ts";
import { viewPods } from "../pods.ts";
import { stateOf, stateOfService } from "../states.ts";
import {
  ago,
  ahead,
  clock,
  grouped,
  moment,
  percent,
} from "../../../core/words.ts";
import { drawHours } from "./hour-bars.ts";
import type { SpendView } from "./month-spend.ts";
import { viewSpend } from "./spend-words.ts";

/** The data of the page. */
export interface StatusFacts {
  readonly status: Status;
  readonly bars: ReadonlyMap<string, readonly HourBar[]>;
  readonly records: readonly CheckRecord[];
  readonly incidents: readonly Incident[];
  readonly jobs: readonly JobView[];
  readonly spend: SpendView;
  /** Undefined where notes are not managed. */
  readonly devices: readonly VaultDevice[] | undefined;
  readonly timeZone: string;
}

export function lookOfStatus({ ok, attention }: Status): Look {
  if (attention.some(({ level }) => level === "down")) {
    return "bad";
  }
  return ok && attention.length === 0 ? "ok" : "warn";
}

/** The data in words and markup, for the template. */
export function viewStatus(facts: StatusFacts) {
  const { status, timeZone } = facts;
  const { at } = status;
  return {
    look: lookOfStatus(status),
    verdict: status.verdict,
    subline: [
      scopeOf(status),
      `checked ${ago(latestLook(status.checks) ?? at, at)}`,
      moment(at, timeZone),
    ].join(" · "),
    gateway: gatewayOf(status),
    quiet: status.ok && status.attention.length === 0,
    attention: status.attention.map((each) => ({
      ...each,
      warned: each.level === "warning",
      since: inWords(at - each.since),
      silenced:
        each.silenced === null
          ? null
          : `silenced until ${moment(each.silenced.until, timeZone)}: ${each.silenced.why}`,
    })),
    rows: viewRows(facts),
    pods: viewPods(status.services, at),
    processes: status.services.filter(isProcess).map((service) => ({
      name: service.name,
      address: service.address,
      pid: service.pid ?? "",
      memory:
        service.stats === null
          ? ""
          : `${Math.round(service.stats.memoryBytes / 1024 / 1024)} MiB`,
      restarts: service.restarts,
      since: inWords(at - service.since),
    })),
    incidents: facts.incidents.slice(0, 10).map((incident) => ({
      check: incident.check,
      from: moment(incident.from, timeZone),
      lasted:
        incident.until === null
          ? `${inWords(incident.durationMs)}, ongoing`
          : inWords(incident.durationMs),
      lasts: incident.until === null,
      reason: incident.reason ?? "",
    })),
    moreIncidents: Math.max(0, facts.incidents.length - 10),
    spend: viewSpend(facts.spend, at, timeZone),
    jobs: facts.jobs.filter(isOfInterest).map((job) => viewJob(job, at)),
    devices: facts.devices?.map((device) => ({
      name: device.name,
      vault: device.vault,
      seen: device.seenAt === null ? "never" : ago(device.seenAt, at),
      behind: device.behind === null ? "–" : grouped(device.behind),
    })),
    notices: status.notices,
    offsite: status.offsite,
  };
}

/** A row for each check, and for each service without a check of its name. */
function viewRows({ status, bars, records, timeZone }: StatusFacts) {
  const checked = new Set(status.checks.map(({ name }) => name));
  const lastDay = {
    title: "last 24 hours",
    format: (at: number) => clock(at, timeZone),
  };
  const ofChecks = status.checks.map((check) => {
    const service = status.services.find(
      ({ name }) => name === check.service && name === check.name,
    );
    const record = records.find(({ name }) => name === check.name);
    const state = stateOf(check, service, status.at);
    const hours = bars.get(check.name);
    return {
      name: check.name,
      ...state,
      bars: hours === undefined ? null : drawHours(hours, lastDay),
      availability:
        record?.availability == null ? "–" : percent(record.availability / 100),
      latency: record?.p95 == null ? "" : `p95 ${record.p95} ms`,
      seen: check.latest?.text ?? "",
    };
  });
  const others = status.services
    .filter(isProcess)
    .filter(({ name }) => !checked.has(name))
    .map((service) => ({
      name: service.name,
      ...stateOfService(service, status.at),
      bars: null,
      availability: "–",
      latency: "",
      seen: "",
    }));
  return [...ofChecks, ...others];
}

/** A process or a container; pods have a table of their own. */
function isProcess({ pod }: Status["services"][number]): boolean {
  return pod === undefined;
}

function scopeOf({ services, checks }: Status): string {
  const pods = services.filter((service) => !isProcess(service)).length;
  if (pods > 0) {
    return `${pods} pods in this release`;
  }
  return services.length === 0
    ? `${checks.length} checks on this machine`
    : `${services.length} services on this machine`;
}

function gatewayOf(status: Status): string {
  const gateway = status.services.find(({ name }) => name === "gateway");
  return gateway?.address.startsWith("http")
    ? gateway.address
    : "http://127.0.0.1:4000";
}

function latestLook(checks: readonly CheckView[]): number | undefined {
  const looks = checks.flatMap(({ latest }) => latest?.at ?? []);
  return looks.length === 0 ? undefined : Math.max(...looks);
}

/** Jobs that run on demand are shown once they have run. */
function isOfInterest({ nextAt, last, running }: JobView): boolean {
  return nextAt !== null || last !== null || running !== null;
}

function viewJob(job: JobView, now: number) {
  const { last, running, nextAt } = job;
  const next = nextAt === null ? "on demand" : ahead(nextAt, now);
  if (running !== null) {
    const done = running.progress?.done ?? null;
    return {
      name: job.name,
      description: job.description,
      look: "rest" as const,
      last: `running${done === null ? "" : `, ${percent(Math.floor(done * 100) / 100)}`}`,
      text: running.progress?.text ?? "",
      next,
    };
  }
  return {
    name: job.name,
    description: job.description,
    look: lookOfRun(last),
    last:
      last === null ? "never" : `${last.status} ${ago(last.startedAt, now)}`,
    text: last?.text ?? job.description,
    next,
  };
}
