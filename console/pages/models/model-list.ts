import {
  DEPLOYMENT_STATES,
  perMillion,
  stateOfDeployment,
  type DeploymentState,
  type DeploymentStateView,
} from "../../../supervisor/gateway/deployment-states.ts";
import type { DeploymentRow } from "../../../supervisor/gateway/deployments.ts";
import { withoutCredentials } from "../../../supervisor/gateway/find-runners.ts";
import type { DeploymentStatistics } from "../../../supervisor/gateway/model-statistics.ts";
import type { Look } from "../../../core/shapes.ts";
import {
  countTitle,
  grouped,
  latency,
  readable,
  shortened,
} from "../../../core/words.ts";
import {
  listHref,
  pageOf,
  readList,
  viewList,
  type ListQuery,
} from "../nouns/list-view.ts";
import type { NounFilter } from "../nouns/noun.ts";
import { withQuery } from "../nouns/noun-address.ts";
import {
  nameColumn,
  type CellContext,
  type NounColumn,
} from "../nouns/noun-columns.ts";
import { MODEL_ADDRESS, MODELS_PATH } from "./model-address.ts";
import { writeRate } from "./model-charts.ts";

/** A deployment with its state and how its calls went in the last 24 hours. */
export interface ModelRow {
  readonly deployment: DeploymentRow;
  readonly state: DeploymentStateView;
  readonly statistics: DeploymentStatistics | undefined;
}

interface ModelsFacts {
  readonly deployments: readonly DeploymentRow[];
  readonly statistics: ReadonlyMap<string, DeploymentStatistics>;
  /** IANA name. */
  readonly timeZone: string;
}

export function modelRows({
  deployments,
  statistics,
  timeZone,
}: ModelsFacts): readonly ModelRow[] {
  return deployments.map((deployment) => {
    const own = statistics.get(deployment.model_info.id);
    const state = stateOfDeployment(deployment, own, timeZone);
    return { deployment, state, statistics: own };
  });
}

/** Each is a column's key, and how rows are compared by it; unknown values come last. */
const SORTS: Readonly<
  Record<string, (row: ModelRow) => string | number | null>
> = {
  model: ({ deployment }) => deployment.model_name.toLowerCase(),
  requests: ({ statistics }) => statistics?.requests ?? 0,
  p50: ({ statistics }) => statistics?.latency_p50_ms ?? null,
  p95: ({ statistics }) => statistics?.latency_p95_ms ?? null,
  tokens: ({ statistics }) => statistics?.tokens_per_second ?? null,
  price: ({ deployment }) => deployment.model_info.input_cost_per_token,
  context: ({ deployment }) => deployment.model_info.max_input_tokens,
};

const COLUMNS: readonly NounColumn<ModelRow>[] = [
  nameColumn(
    ({ deployment }) => ({
      href: MODEL_ADDRESS.href(deployment.model_name),
      text: readable(deployment.model_name),
      note: placeOf(deployment),
    }),
    "Model",
    "model",
  ),
  {
    title: "State",
    cell: ({ state: { look, word, why } }) => ({
      kind: "state",
      look,
      word,
      note: shortened(why, MAX_CHARACTERS),
    }),
  },
  numberColumn("Calls", "requests", ({ statistics }) =>
    statistics === undefined ? null : grouped(statistics.requests),
  ),
  numberColumn("p50", "p50", ({ statistics }) =>
    durationOf(statistics?.latency_p50_ms),
  ),
  numberColumn("p95", "p95", ({ statistics }) =>
    durationOf(statistics?.latency_p95_ms),
  ),
  numberColumn("Tokens/s", "tokens", ({ statistics }) =>
    rateOf(statistics?.tokens_per_second),
  ),
  numberColumn("$ per M tokens", "price", ({ deployment }) =>
    priceOf(deployment),
  ),
  numberColumn("Context", "context", ({ deployment }) => contextOf(deployment)),
];

const TEST_COLUMN: NounColumn<ModelRow> = {
  title: "Action",
  cell: ({ deployment }) =>
    isTestable(deployment)
      ? {
          kind: "act",
          label: "Test",
          // Of many buttons with the same word.
          name: `Test ${readable(deployment.model_name)}, ${placeOf(deployment)}`,
          action: testHref(deployment),
        }
      : { kind: "text", text: "" },
};

/** A wildcard has no model that could be called. */
export function isTestable({
  provider_params: { model },
}: DeploymentRow): boolean {
  return !model.endsWith("*");
}

export function testHref({ model_info: { id } }: DeploymentRow): string {
  return withQuery(`${MODELS_PATH}/test`, { id });
}

export function readModelQuery(query: unknown): ListQuery {
  return readList(query, Object.keys(SORTS), DEPLOYMENT_STATES, "asc");
}

/** What templates/models.eta shows of the deployments: the rows that are searched for, a page of them. */
export function viewModels(
  all: readonly ModelRow[],
  query: ListQuery,
  at: CellContext & { readonly mayTest: boolean },
) {
  const found = all.filter((row) => isFound(row, query.search));
  const chosen = sorted(
    found.filter(
      ({ state: { state } }) => query.state === "" || state === query.state,
    ),
    query,
  );
  const { rows, pages } = pageOf(chosen, query);
  return {
    ...headingOf(all, chosen, query),
    filters: filtersOf(found, query),
    list: viewList({
      path: MODELS_PATH,
      query,
      columns: at.mayTest ? [...COLUMNS, TEST_COLUMN] : COLUMNS,
      rows,
      total: chosen.length,
      pages,
      at,
    }),
  };
}

function isFound({ deployment }: ModelRow, search: string): boolean {
  const { model_name: alias, provider_params: params } = deployment;
  return `${alias} ${params.model} ${params.api_base ?? ""}`
    .toLowerCase()
    .includes(search.toLowerCase());
}

function sorted(
  rows: readonly ModelRow[],
  { sort, order }: ListQuery,
): readonly ModelRow[] {
  const valueOf = SORTS[sort] ?? (() => null);
  const sign = order === "asc" ? 1 : -1;
  return rows.toSorted((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === null || b === null) {
      return Number(a === null) - Number(b === null);
    }
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  });
}

const STATE_LOOKS: Readonly<
  Record<DeploymentState, { readonly look: Look; readonly word: string }>
> = {
  serving: { look: "ok", word: "serving" },
  ready: { look: "ok", word: "ready" },
  cooling: { look: "warn", word: "cooling down" },
  failing: { look: "bad", word: "failing" },
  pending: { look: "none", word: "pending" },
  off: { look: "rest", word: "off" },
};

/** The states that deployments are in, with their numbers. */
function filtersOf(
  rows: readonly ModelRow[],
  query: ListQuery,
): readonly NounFilter[] {
  const count = (state: DeploymentState) =>
    rows.filter((row) => row.state.state === state).length;
  const filter = (state: DeploymentState | "", number: number) => ({
    href: listHref(MODELS_PATH, query, { state, page: 1 }),
    count: grouped(number),
    current: query.state === state,
  });
  return [
    { look: "none", word: "all", ...filter("", rows.length) },
    ...DEPLOYMENT_STATES.map((state) => ({
      ...STATE_LOOKS[state],
      ...filter(state, count(state)),
    })).filter(({ count: number, current }) => number !== "0" || current),
  ];
}

function headingOf(
  all: readonly ModelRow[],
  chosen: readonly ModelRow[],
  { search, state }: ListQuery,
): { readonly title: string; readonly look: Look; readonly empty: boolean } {
  if (all.length === 0) {
    return { title: "No models yet.", look: "none", empty: true };
  }
  if (search !== "" || state !== "") {
    const title = `${countTitle(chosen.length, "deployment")} found.`;
    return { title, look: chosen.length === 0 ? "none" : "ok", empty: false };
  }
  const count = (of: DeploymentState) =>
    all.filter((row) => row.state.state === of).length;
  const [failing, cooling] = [count("failing"), count("cooling")];
  const models = new Set(all.map(({ deployment }) => deployment.model_name))
    .size;
  if (failing + cooling > 0) {
    return {
      title: [
        ...(failing === 0 ? [] : [`${grouped(failing)} failing`]),
        ...(cooling === 0 ? [] : [`${grouped(cooling)} cooling down`]),
      ]
        .join(", ")
        .concat(` of ${countTitle(all.length, "deployment")}.`),
      look: failing > 0 ? "bad" : "warn",
      empty: false,
    };
  }
  const usable = count("serving") + count("ready");
  return {
    title: `${countTitle(models, "model")}, ${grouped(usable)} of ${countTitle(all.length, "deployment")} usable.`,
    look: usable === 0 ? "none" : "ok",
    empty: false,
  };
}

function numberColumn(
  title: string,
  sort: string,
  text: (row: ModelRow) => string | null,
): NounColumn<ModelRow> {
  return {
    title,
    sort,
    number: true,
    cell: (row) => ({ kind: "number", text: text(row) ?? "–" }),
  };
}

/** Provider, model and address. */
export function placeOf({ provider_params: params }: DeploymentRow): string {
  const { api_base: base = "" } = params;
  const address = URL.canParse(base) ? withoutCredentials(base) : base;
  return readable(
    [params.model, ...(address === "" ? [] : [address])].join(" · "),
  );
}

/** "2.5 in, 10 out" */
export function priceOf({ model_info: info }: DeploymentRow): string | null {
  const input = perMillion(info.input_cost_per_token);
  const output = perMillion(info.output_cost_per_token);
  return input === null && output === null
    ? null
    : `${input ?? "–"} in, ${output ?? "–"} out`;
}

export function contextOf({ model_info: info }: DeploymentRow): string | null {
  return info.max_input_tokens === null ? null : grouped(info.max_input_tokens);
}

export function durationOf(ms: number | null | undefined): string | null {
  return ms == null ? null : latency(ms);
}

export function rateOf(tokens: number | null | undefined): string | null {
  return tokens == null ? null : writeRate(tokens);
}

/** Of an error in a table; all of it is on the model's page. */
const MAX_CHARACTERS = 120;
