import type { CheckView } from "../../../supervisor/checks/watched.ts";
import type { ServiceStatus, Status } from "../../../supervisor/status.ts";
import { clock, percent } from "../../../core/words.ts";
import { stateOf, stateOfService } from "../states.ts";
import { drawHours } from "./hour-bars.ts";
import type { StatusFacts } from "./status-facts.ts";

type Group = "Services" | "Models" | "Checks";

/** Kinds whose latency is that of a service; the others read a file, a list or a disk. */
const TIMED: readonly CheckView["kind"][] = [
  "http",
  "tcp",
  "postgres",
  "redis",
  "couchdb",
];
const STORES: readonly CheckView["kind"][] = ["postgres", "redis", "couchdb"];

/** Whether the response time of a check says something about its target. */
export function isTimed({ kind }: Pick<CheckView, "kind">): boolean {
  return TIMED.includes(kind);
}

/** Services, models and the other checks, each with its last 24 hours; a service without a check of its name has none. */
export function viewGroups(facts: StatusFacts) {
  const { status } = facts;
  const checked = new Set(status.checks.map(({ name }) => name));
  const rows = [
    ...status.checks.map((check) => ({
      group: groupOf(check, status),
      ...viewCheck(check, facts),
    })),
    ...status.services
      .filter(isProcess)
      .filter(({ name }) => !checked.has(name))
      .map((service) => ({
        group: "Services" as const,
        name: service.name,
        ...stateOfService(service, status.at),
        bars: null,
        availability: "",
        latency: "",
        text: "",
      })),
  ];
  const titles: readonly Group[] = ["Services", "Models", "Checks"];
  return titles
    .map((title) => ({
      title,
      rows: rows.filter(({ group }) => group === title),
    }))
    .filter((group) => group.rows.length > 0);
}

/** Where this supervisor runs nothing, whatever answers requests is a service. */
function groupOf({ name, kind }: CheckView, { services }: Status): Group {
  if (kind === "models") {
    return "Models";
  }
  const isService =
    services.some((service) => service.name === name) ||
    STORES.includes(kind) ||
    (services.length === 0 && ["http", "tcp", "container"].includes(kind));
  return isService ? "Services" : "Checks";
}

function viewCheck(check: CheckView, facts: StatusFacts) {
  const { status, bars, records, timeZone } = facts;
  const service = status.services.find(
    ({ name }) => name === check.service && name === check.name,
  );
  const record = records.find(({ name }) => name === check.name);
  const hours = bars.get(check.name);
  return {
    name: check.name,
    ...stateOf(check, service, status.at),
    bars:
      hours === undefined
        ? null
        : drawHours(hours, {
            title: "last 24 hours",
            format: (at) => clock(at, timeZone),
          }),
    availability:
      record?.availability == null ? "" : percent(record.availability / 100),
    latency:
      record?.p95 == null || !isTimed(check) ? "" : `p95 ${record.p95} ms`,
    // What a service answered says little; what a disk or a backup has is the point of its check.
    text:
      groupOf(check, status) === "Services" || check.latest === null
        ? ""
        : check.latest.text,
  };
}

/** The latest result of every check. */
export function viewResults({ status }: StatusFacts) {
  return status.checks.map(({ name, latest }) => ({
    name,
    text: latest?.text ?? "",
  }));
}

/** A process or a container; pods have a table of their own. */
export function isProcess({ pod }: Pick<ServiceStatus, "pod">): boolean {
  return pod === undefined;
}
