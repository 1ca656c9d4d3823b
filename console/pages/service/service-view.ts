import { mebibytes } from "../../../core/size.ts";
import { silenceField } from "../silence-field.ts";
import { inWords } from "../../../core/duration.ts";
import type { ServiceStatus, Status } from "../../../supervisor/status.ts";
import type { Look } from "../../../core/shapes.ts";
import { viewPods } from "../pods.ts";
import { stateOf, stateOfService } from "../states.ts";
import { isTimed } from "../status/watched-rows.ts";
import {
  ago,
  capital,
  counted,
  moment,
  percent,
  stateWord,
} from "../../../core/words.ts";
import { describeEntry } from "./history-words.ts";
import { viewIncidents } from "./incident-lines.ts";
import { drawLatencies } from "./latency-chart.ts";
import { viewLogChoice, viewOutput } from "./log-view.ts";
import type { Known, Past, ServiceFacts } from "./service-facts.ts";
import { spans, type SpanName } from "./spans.ts";

/** Undefined when not found. */
export function findKnown(status: Status, name: string): Known | undefined {
  const check = status.checks.find((each) => each.name === name);
  const service = status.services.find(
    (each) => each.name === (check?.service ?? name),
  );
  return check === undefined && service === undefined
    ? undefined
    : { check, service };
}

/** The pods of the service that a check monitors, or the pod of the page. */
function podsOf(
  { services }: Status,
  { check, service }: Known,
): readonly ServiceStatus[] {
  return service === undefined
    ? services.filter(
        ({ pod }) => pod != null && pod.component === check?.service,
      )
    : [service];
}

/** The page's title and colour. */
export function verdictOf(
  name: string,
  { check, service }: Known,
  at: number,
): { readonly title: string; readonly look: Look } {
  const { look, word } = stateIn({ check, service }, name, at);
  return { look, title: `${capital(name)} ${verbOf(word)}${word}.` };
}

function verbOf(word: string): string {
  if (/^(ended|gave)/.test(word)) {
    return "";
  }
  if (word.startsWith("maintenance")) {
    return "is in ";
  }
  return /^(up|down|not ready) for /.test(word) ? "has been " : "is ";
}

/** Whether the state changes soon, so that the page refreshes quickly. */
export function isInMotion({ check, service }: Known): boolean {
  return (
    check?.state === "pending" ||
    check?.state === "new" ||
    (service !== undefined &&
      ["waiting", "starting", "backing-off", "stopping"].includes(
        service.state,
      ))
  );
}

/** The data in words and markup, for the template. */
export function viewService(facts: ServiceFacts, known: Known) {
  const { name, status, past, timeZone } = facts;
  const { check, service } = known;
  const { at } = status;
  const verdict = verdictOf(name, known, at);
  const path = `/services/${encodeURIComponent(name)}`;
  return {
    name,
    path,
    look: verdict.look,
    verdict: verdict.title,
    subline: sublineOf(known, at, timeZone),
    seen: check?.latest?.text ?? null,
    trouble: facts.trouble,
    attention: attentionOf(facts, known),
    silences: facts.silences.map(({ until, why }) => ({
      until: moment(until, timeZone),
      why,
    })),
    checked: check !== undefined,
    paused: check?.state === "paused",
    // Kubernetes restarts pods.
    runs: service?.command === undefined ? (service?.name ?? null) : null,
    restartCommand: service?.pod?.restartCommand ?? null,
    pods: viewPods(podsOf(status, known), at),
    figures: [
      ...(check === undefined
        ? []
        : figuresOfCheck(past.records, isTimed(check))),
      ...(service === undefined ? [] : figuresOfService(service, at)),
    ],
    spans: Object.entries(spans).map(([key, { label }]) => ({
      label,
      href: key === "day" ? path : `${path}?span=${key}`,
      current: key === facts.span,
    })),
    chart: chartOf(facts, known),
    relations: relationsOf(facts, known),
    ...viewIncidents(past.incidents, timeZone),
    entries: past.entries.map((entry) => describeEntry(entry, timeZone)),
    output: viewOutput(facts),
    logs: viewLogChoice(facts, path),
    silenceField: silenceField(facts.tomorrow),
  };
}

function chartOf({ past, span, timeZone }: ServiceFacts, { check }: Known) {
  return check === undefined
    ? null
    : drawLatencies(past.steps, spans[span], timeZone, isTimed(check));
}

function attentionOf({ name, status }: ServiceFacts, { service }: Known) {
  return status.attention
    .filter((each) => [name, service?.name].includes(each.name))
    .map((each) => ({
      ...each,
      warned: each.level === "warning",
      since: inWords(status.at - each.since),
    }));
}

function stateIn(
  { check, service }: Known,
  name: string,
  at: number,
): { readonly look: Look; readonly word: string } {
  if (check !== undefined) {
    return stateOf(check, service?.name === name ? service : undefined, at);
  }
  return service === undefined
    ? { look: "none", word: "unknown" }
    : stateOfService(service, at);
}

function sublineOf(
  { check, service }: Known,
  at: number,
  timeZone: string,
): string {
  return [
    check === undefined ? "no check" : `${check.kind} check`,
    ...(check?.latest ? [`checked ${ago(check.latest.at, at)}`] : []),
    ...(service === undefined ? [] : [service.address]),
    moment(at, timeZone),
  ].join(" · ");
}

function figuresOfCheck(records: Past["records"], timed: boolean) {
  return Object.entries(spans).map(([key, { label }]) => {
    const record = records[key as SpanName];
    return {
      name: `Uptime, ${label}`,
      value:
        record.availability === null ? "–" : percent(record.availability / 100),
      note: [
        record.availability === null
          ? "not monitored"
          : record.downMs === 0
            ? "never down"
            : `down ${inWords(record.downMs)}`,
        ...(timed && record.p95 !== null ? [`p95 ${record.p95} ms`] : []),
      ].join(" · "),
    };
  });
}

function figuresOfService(
  { state, since, stats, ...service }: ServiceStatus,
  at: number,
) {
  return [
    {
      name: kindOf(service),
      value: state === "running" ? inWords(at - since) : stateWord(state),
      note: [
        ...(service.pid === null ? [] : [`pid ${service.pid}`]),
        service.restarts === 0
          ? "no automatic restarts"
          : counted(service.restarts, "automatic restart"),
      ].join(" · "),
    },
    ...(stats === null
      ? []
      : [
          {
            name: "Memory",
            value: `${mebibytes(stats.memoryBytes)} MiB`,
            note:
              stats.memoryLimitBytes === undefined
                ? "no limit"
                : `of ${mebibytes(stats.memoryLimitBytes)} MiB`,
          },
        ]),
  ];
}

function kindOf({ container, pod }: Pick<ServiceStatus, "container" | "pod">) {
  if (pod !== undefined) {
    return "Pod";
  }
  return container === undefined ? "Process" : "Container";
}

/** Dependencies, dependents and other checks of the same service, each with its state. */
export function relationsOf(
  { name, checks, status }: Pick<ServiceFacts, "name" | "checks" | "status">,
  { check, service }: Known,
) {
  const configured = checks.find((each) => each.name === name);
  const before = configured?.depends_on ?? [];
  const after = checks
    .filter(({ depends_on }) => depends_on.includes(name))
    .map((each) => each.name);
  const groups: readonly (readonly [string, readonly string[]])[] = [
    ["Depends on", before],
    ["Required by", after],
    [
      "Other checks of this service",
      status.checks
        .filter(
          (each) => service !== undefined && each.service === service.name,
        )
        .map((each) => each.name)
        .filter((other) => ![name, ...before, ...after].includes(other)),
    ],
    [
      "Checks the service",
      check !== undefined && service !== undefined && service.name !== name
        ? [service.name]
        : [],
    ],
  ];
  return groups
    .filter(([, names]) => names.length > 0)
    .map(([label, names]) => ({
      label,
      others: names.map((other) => {
        const known = findKnown(status, other);
        return {
          name: other,
          href:
            known === undefined
              ? null
              : `/services/${encodeURIComponent(other)}`,
          ...(known === undefined
            ? { look: "none" as const, word: "unknown" }
            : stateIn(known, other, status.at)),
        };
      }),
    }));
}
