import { mebibytes } from "../../../core/size.ts";
import type { CheckView } from "../../../supervisor/checks/watched.ts";
import { inWords } from "../../../core/duration.ts";
import type { Attention, Status } from "../../../supervisor/status.ts";
import type { Look } from "../../../core/shapes.ts";
import { pageOf } from "../attention.ts";
import {
  lastedInWords,
  periodInWords,
} from "../../../supervisor/checks/incident-words.ts";
import { lookOfIncident } from "../incident-look.ts";
import { viewPods } from "../pods.ts";
import { ago, grouped, moment } from "../../../core/words.ts";
import { isOfInterest, viewJob } from "./job-lines.ts";
import type { StatusFacts } from "./status-facts.ts";
import { viewSpend } from "./spend-words.ts";
import { isProcess, viewGroups, viewResults } from "./watched-rows.ts";

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
    quiet: status.ok && status.attention.length === 0,
    attention: status.attention.map((each) => viewAttention(each, facts)),
    groups: viewGroups(facts),
    results: viewResults(facts),
    pods: viewPods(status.services, at),
    processes: status.services.filter(isProcess).map((service) => ({
      name: service.name,
      address: service.address,
      pid: service.pid ?? "",
      memory:
        service.stats === null
          ? ""
          : `${mebibytes(service.stats.memoryBytes)} MiB`,
      restarts: service.restarts,
      since: inWords(at - service.since),
    })),
    incidents: facts.incidents.slice(0, 10).map((incident) => ({
      check: incident.check,
      period: periodInWords(incident.from, incident.until, timeZone),
      lasted: lastedInWords(incident),
      look: lookOfIncident(incident),
      reason: incident.reason ?? "",
    })),
    moreIncidents: Math.max(0, facts.incidents.length - 10),
    spend: viewSpend(facts.spend, at, timeZone),
    jobs: facts.jobs.filter(isOfInterest).map((job) => viewJob(job, at)),
    devices: facts.devices?.devices.map((device) => ({
      name: device.name,
      vault: device.vault,
      seen: device.seenAt === null ? "never" : ago(device.seenAt, at),
      changesSince: device.behind === null ? "–" : grouped(device.behind),
    })),
    vaults: facts.devices?.vaults ?? [],
    notices: status.notices,
    offsite: status.offsite,
  };
}

/** With the page that helps and, for a service that runs here, its restart. */
function viewAttention(each: Attention, { status, timeZone }: StatusFacts) {
  const { topic, id } = each.about;
  const check = status.checks.find(({ name }) => name === id);
  const service = status.services.find(
    ({ name }) => topic === "service" && name === (check?.service ?? id),
  );
  const href = pageOf(each);
  return {
    ...each,
    warned: each.level === "warning",
    since: inWords(status.at - each.since),
    silenced:
      each.silenced === null
        ? null
        : `silenced until ${moment(each.silenced.until, timeZone)}: ${each.silenced.why}`,
    link: href === "/" ? null : { href, text: `Open ${linkText(each)}` },
    restart:
      service === undefined || service.command !== undefined
        ? null
        : service.name,
  };
}

function linkText({ about: { topic, id }, name }: Attention): string {
  if (id === null) {
    return topic === "vault" ? "notes" : `${topic}s`;
  }
  // The ids of payers are not their names.
  return topic === "key" || topic === "user" || topic === "team" ? name : id;
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

function latestLook(checks: readonly CheckView[]): number | undefined {
  const looks = checks.flatMap(({ latest }) => latest?.at ?? []);
  return looks.length === 0 ? undefined : Math.max(...looks);
}
