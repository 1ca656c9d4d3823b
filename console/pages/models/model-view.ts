import type { ModelHistory } from "../../../supervisor/gateway/model-statistics.ts";
import type { Look } from "../../../core/shapes.ts";
import {
  counted,
  dayIn,
  grouped,
  moment,
  percent,
  readable,
} from "../../../core/words.ts";
import { callsHref } from "../calls/call-choice.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { spans, type SpanName } from "../service/spans.ts";
import { MODEL_ADDRESS, MODELS_PATH } from "./model-address.ts";
import { drawHistory } from "./model-charts.ts";
import {
  contextOf,
  durationOf,
  isTestable,
  placeOf,
  priceOf,
  rateOf,
  testHref,
  type ModelRow,
} from "./model-list.ts";
import { waitingVariables } from "./stored-values.ts";

interface ModelFacts {
  /** The alias. */
  readonly name: string;
  /** Its deployments; none for a name that a wildcard admits, or that is no longer configured. */
  readonly rows: readonly ModelRow[];
  readonly history: ModelHistory;
  readonly span: SpanName;
  /** IANA name. */
  readonly timeZone: string;
}

/** What templates/model.eta shows. */
export function viewModel(facts: ModelFacts) {
  const { name, rows, history, span, timeZone } = facts;
  return {
    ...headingOf(facts),
    name: readable(name),
    deployments: rows.map((row) => viewDeployment(row, timeZone)),
    waiting: waitingVariables(rows.map(({ deployment }) => deployment)),
    figures: figuresOf(facts),
    spans: Object.entries(spans).map(([each, { label }]) => ({
      label,
      href: withQuery(MODEL_ADDRESS.route(), {
        id: name,
        ...(each === "day" ? {} : { span: each }),
      }),
      current: each === span,
    })),
    span: spans[span].label,
    charts: drawHistory(history, spans[span], timeZone),
    // The calls of a wildcard have other names.
    calls: name.endsWith("*") ? null : callsHref({ model: name }),
    playground: withQuery("/playground", { model: name }),
  };
}

function headingOf({ name, rows }: ModelFacts): {
  readonly title: string;
  readonly look: Look;
} {
  const shown = readable(name);
  const states = rows.map(({ state }) => state);
  const [first] = states;
  if (first === undefined) {
    return { title: `${shown} is not configured.`, look: "none" };
  }
  const failing = states.find(({ state }) => state === "failing");
  const usable = states.filter(({ look }) => look === "ok").length;
  if (failing !== undefined) {
    return {
      title:
        usable === 0
          ? `${shown} is failing.`
          : `${shown} is failing at ${grouped(states.length - usable)} of ${grouped(states.length)} deployments.`,
      look: usable === 0 ? "bad" : "warn",
    };
  }
  const worst =
    states.find(({ state }) => state === "serving") ??
    states.find(({ state }) => state === "ready") ??
    states.find(({ state }) => state === "cooling") ??
    first;
  return {
    title:
      worst.state === "pending"
        ? `${shown} ${worst.why}.`
        : `${shown} is ${worst.word}.`,
    look: worst.look,
  };
}

function viewDeployment(
  { deployment, state, statistics }: ModelRow,
  timeZone: string,
) {
  const { model_name: alias, model_info: info } = deployment;
  const failure = statistics?.last_failure ?? null;
  const place = placeOf(deployment);
  const asked = `${readable(alias)} (${place})`;
  const context = contextOf(deployment);
  return {
    place,
    state,
    facts: [
      info.db_model ? "added with this page or the API" : "configuration file",
      info.mode,
      ...(info.team_id == null ? [] : [`team ${readable(info.team_id)}`]),
      `$ per million tokens: ${priceOf(deployment) ?? "unknown"}`,
      ...(context === null ? [] : [`context: ${context} tokens`]),
    ],
    figures: figuresOfDay(statistics),
    failure:
      failure === null
        ? null
        : {
            at: moment(Date.parse(failure.at), timeZone),
            text: readable(`${failure.status} ${failure.error}`),
          },
    test: isTestable(deployment)
      ? { action: testHref(deployment), name: `Test ${asked}` }
      : null,
    asks: asksFor(deployment, asked),
  };
}

function figuresOfDay(statistics: ModelRow["statistics"]): string {
  if (statistics === undefined || statistics.requests === 0) {
    return "No calls in the last 24 hours.";
  }
  const { requests } = statistics;
  return [
    `${counted(requests, "call")} in the last 24 hours`,
    `p50 ${durationOf(statistics.latency_p50_ms) ?? "–"}`,
    `p95 ${durationOf(statistics.latency_p95_ms) ?? "–"}`,
    `${rateOf(statistics.tokens_per_second) ?? "–"} tokens per second`,
  ].join(" · ");
}

/** What changes a deployment, as templates/ask.eta shows it. */
function asksFor(
  { model_name: alias, model_info: info }: ModelRow["deployment"],
  asked: string,
) {
  const path = (verb: string) =>
    withQuery(`${MODELS_PATH}/${verb}`, { id: info.id });
  return [
    info.blocked
      ? {
          verb: "Switch on",
          action: path("switch-on"),
          question: `Send calls to ${asked} again?`,
        }
      : {
          verb: "Switch off",
          action: path("switch-off"),
          question: `Send no more calls to ${asked}? A model without another deployment answers 403 until it is switched on.`,
          destroys: true,
        },
    ...(info.db_model
      ? [
          {
            verb: "Delete",
            action: path("delete"),
            question:
              "Deletes the deployment and its key. Its calls stay in the ledger.",
            confirm: readable(alias),
            destroys: true,
          },
        ]
      : []),
  ];
}

function figuresOf({ name, history, span, timeZone }: ModelFacts) {
  const { total, data } = history;
  const [first] = data;
  const from =
    first === undefined ? "" : dayIn(timeZone, Date.parse(first.from));
  const of = (status: string) =>
    name.endsWith("*") ? null : callsHref({ model: name, status, from });
  const share = (count: number) =>
    total.requests === 0 ? "" : `${percent(count / total.requests)} of calls`;
  return [
    {
      name: "Calls",
      value: grouped(total.requests),
      note: `last ${spans[span].label}`,
      href: total.requests === 0 ? null : of(""),
    },
    {
      name: "Failed",
      value: grouped(total.failed),
      note: share(total.failed),
      href: total.failed === 0 ? null : of("failure"),
    },
    {
      name: "Latency p50",
      value: durationOf(total.latency_p50_ms) ?? "–",
      note: "half of the answers within",
      href: null,
    },
    {
      name: "Latency p95",
      value: durationOf(total.latency_p95_ms) ?? "–",
      note: "95 % of the answers within",
      href: null,
    },
    {
      name: "Tokens per second",
      value: rateOf(total.tokens_per_second) ?? "–",
      note: "while answers are generated",
      href: null,
    },
  ];
}
