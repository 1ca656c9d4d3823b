import { expect, test } from "vitest";
import type { DeploymentRow } from "../../../supervisor/gateway/deployments.ts";
import type {
  DeploymentStatistics,
  ModelHistory,
} from "../../../supervisor/gateway/model-statistics.ts";
import { viewFound } from "./discovery-view.ts";
import { newModel, newModelBody, newModelFields } from "./model-form.ts";
import { modelRows, readModelQuery, viewModels } from "./model-list.ts";
import { viewModel } from "./model-view.ts";
import { storedVariables, waitingVariables } from "./stored-values.ts";

const AT = { timeZone: "UTC", now: 0, mayTest: true };

function deployment(
  alias: string,
  info: Partial<DeploymentRow["model_info"]> = {},
  base = "http://127.0.0.1:11434/v1",
): DeploymentRow {
  return {
    model_name: alias,
    provider_params: { model: `openai/${alias}`, api_base: base },
    model_info: {
      id: `id of ${alias}`,
      db_model: false,
      mode: "chat",
      litellm_provider: "openai",
      blocked: false,
      waits_for: null,
      storable: null,
      cooling_down_until: null,
      input_cost_per_token: 2.5e-6,
      output_cost_per_token: 1e-5,
      max_input_tokens: 128_000,
      runner: null,
      ...info,
    },
  };
}

function statisticsOf(
  alias: string,
  fields: Partial<DeploymentStatistics> = {},
): readonly [string, DeploymentStatistics] {
  const model_id = `id of ${alias}`;
  return [
    model_id,
    {
      model_id,
      requests: 20,
      failed: 0,
      interrupted: 0,
      latency_p50_ms: 800,
      latency_p95_ms: 2_000,
      tokens_per_second: 41.26,
      answered_at: "2026-11-21T10:00:00.000Z",
      last_failure: null,
      ...fields,
    },
  ];
}

const failure = {
  at: "2026-11-21T11:00:00.000Z",
  status: 500,
  error: "x".repeat(300),
};

const rows = modelRows({
  deployments: [
    deployment("zebra"),
    deployment("alpha", { blocked: true }),
    deployment("broken"),
    deployment("cloud", { waits_for: "OPENAI_API_KEY", storable: "key" }),
  ],
  statistics: new Map([
    statisticsOf("zebra"),
    statisticsOf("broken", { last_failure: failure, latency_p95_ms: null }),
  ]),
  timeZone: "UTC",
});

const list = (query: object = {}) =>
  viewModels(rows, readModelQuery(query), AT);
const names = (query: object = {}) =>
  list(query).list.rows.map(([name]) => name?.kind === "name" && name.text);

test("each deployment has its state, latency, tokens per second, price, context and a test", () => {
  const { title, look, list: table } = list();
  expect([title, look]).toEqual(["1 failing of 4 deployments.", "bad"]);
  expect(table.rows.at(-1)).toEqual([
    {
      kind: "name",
      href: "/models/model?id=zebra",
      text: "zebra",
      note: "openai/zebra · http://127.0.0.1:11434/v1",
    },
    { kind: "state", look: "ok", word: "serving", note: "" },
    { kind: "number", text: "20" },
    { kind: "number", text: "800 ms" },
    { kind: "number", text: "2.0 s" },
    { kind: "number", text: "41" },
    { kind: "number", text: "2.5 in, 10 out" },
    { kind: "number", text: "128,000" },
    {
      kind: "act",
      label: "Test",
      name: "Test zebra, openai/zebra · http://127.0.0.1:11434/v1",
      action: "/models/test?id=id+of+zebra",
    },
  ]);
  expect(table.rows[1]?.[1]).toMatchObject({
    word: "failing",
    note: `${"x".repeat(120)}…`,
  });
});

test("deployments are searched, filtered by state, and sorted with unknown values last", () => {
  expect(names()).toEqual(["alpha", "broken", "cloud", "zebra"]);
  expect(names({ search: "OPENAI/ZEB" })).toEqual(["zebra"]);
  expect(names({ state: "pending" })).toEqual(["cloud"]);
  expect(names({ sort: "p95", order: "desc" })[0]).toBe("zebra");
  expect(names({ sort: "nonsense", page: "-1" })).toHaveLength(4);
  expect(list().filters.map(({ word, count }) => `${word} ${count}`)).toEqual([
    "all 4",
    "serving 1",
    "failing 1",
    "pending 1",
    "off 1",
  ]);
});

test("hundreds of deployments are shown 25 at a time", () => {
  const many = modelRows({
    deployments: Array.from({ length: 301 }, (_, at) => deployment(`m${at}`)),
    statistics: new Map(),
    timeZone: "UTC",
  });
  const view = viewModels(many, readModelQuery({ page: "13" }), AT);
  expect(view.list.rows).toHaveLength(1);
  expect(view.list.range).toBe("301 to 301 of 301");
  expect(view.list.next).toBeNull();
  expect(view.title).toBe("301 models, 301 of 301 deployments usable.");
});

test("who may not test has no column for it; addresses are shown without passwords", () => {
  const [row] = modelRows({
    deployments: [deployment("secret", {}, "http://me:hidden@host/v1")],
    statistics: new Map(),
    timeZone: "UTC",
  });
  const view = viewModels(row === undefined ? [] : [row], readModelQuery({}), {
    ...AT,
    mayTest: false,
  });
  expect(view.list.columns.map(({ title }) => title)).not.toContain("Action");
  expect(JSON.stringify(view)).toContain("http://host/v1");
  expect(JSON.stringify(view)).not.toContain("hidden");
});

const NOTHING = {
  requests: 0,
  failed: 0,
  interrupted: 0,
  latency_p50_ms: null,
  latency_p95_ms: null,
  tokens_per_second: null,
};

function historyOf(total: Partial<ModelHistory["total"]>): ModelHistory {
  return {
    step_hours: 1,
    total: { ...NOTHING, ...total },
    data: Array.from({ length: 24 }, (_, at) => ({
      from: new Date(Date.UTC(2026, 10, 21, at)).toISOString(),
      ...NOTHING,
      ...(at === 3 ? total : {}),
    })),
  };
}

const viewOf = (
  found: readonly (typeof rows)[number][],
  total: Partial<ModelHistory["total"]> = {},
  name = "alpha",
) =>
  viewModel({
    name,
    rows: found,
    history: historyOf(total),
    span: "day",
    timeZone: "UTC",
  });

test("the page of a model has its charts with a table each, and leads to its calls", () => {
  const view = viewOf(rows.slice(0, 1), {
    requests: 20,
    failed: 2,
    latency_p50_ms: 800,
    tokens_per_second: 4.25,
  });
  expect(view.title).toBe("alpha is serving.");
  expect(view.charts.map(({ title }) => title)).toEqual([
    "Calls, last 24 hours",
    "Latency, last 24 hours",
    "Tokens per second, last 24 hours",
  ]);
  expect(view.charts[0]?.rows[3]).toEqual({
    label: "21 Nov, 03:00",
    values: ["18", "2", "0"],
  });
  expect(view.charts[1]?.rows[3]?.values).toEqual(["800 ms", "—"]);
  expect(view.charts[2]?.rows[3]?.values).toEqual(["4.3"]);
  expect(view.calls).toBe("/spend/calls?model=alpha");
  expect(view.figures[1]).toMatchObject({
    value: "2",
    note: "10 % of calls",
    href: "/spend/calls?model=alpha&status=failure&from=2026-11-21",
  });
});

test.each([
  [[rows[1]], "alpha is off.", "rest"],
  [[rows[2]], "alpha is failing.", "bad"],
  [[rows[2], rows[0]], "alpha is failing at 1 of 2 deployments.", "warn"],
  [[rows[3]], "alpha needs OPENAI_API_KEY.", "none"],
  [[rows[3], rows[0]], "alpha is serving.", "ok"],
  [[], "alpha is not configured.", "none"],
] as const)(
  "the heading of %# tells the state of an alias",
  (of, title, look) => {
    const found = of.flatMap((row) => row ?? []);
    expect(viewOf(found)).toMatchObject({ title, look });
  },
);

test("a wildcard has no list of calls, since they have other names, and no test", () => {
  const wildcard = modelRows({
    deployments: [deployment("*")],
    statistics: new Map(),
    timeZone: "UTC",
  });
  expect(viewOf(wildcard).deployments[0]?.test).toBeNull();
  expect(
    viewModels(wildcard, readModelQuery({}), AT).list.rows[0]?.at(-1),
  ).toEqual({ kind: "text", text: "" });
  expect(viewOf([], { requests: 1 }, "openai/*")).toMatchObject({
    calls: null,
    figures: [{ href: null }, {}, {}, {}, {}],
  });
});

test("variables that models wait for are supplied once for all of them", () => {
  const pending = { waits_for: "OPENAI_API_KEY", storable: "key" } as const;
  const [value, other] = waitingVariables([
    deployment("one", pending),
    deployment("two", pending),
    deployment("salted", { waits_for: "HEARTH_SALT_KEY" }),
  ]);
  expect(value).toMatchObject({
    models: ["one", "two"],
    ask: {
      verb: "Store key",
      hidden: { variable: "OPENAI_API_KEY", kind: "key" },
      fields: [{ kind: "secret" }],
    },
  });
  expect(other?.ask).toBeNull();
  const stored = storedVariables([
    { credential_name: "RUNNER_URL", values: ["api_base"] },
    { credential_name: "shared credential", values: ["api_key"] },
  ]);
  expect(stored.map(({ variable, ask }) => [variable, ask?.verb])).toEqual([
    ["RUNNER_URL", "Replace address"],
  ]);
});

test("a form without secrets comes back; a password in an address is rejected", () => {
  const typed = {
    model_name: "mine",
    model: "openai/x",
    api_base: "http://me:hidden@host",
    api_key: "sk-hidden",
  };
  const read = newModel.safeParse(typed);
  expect(read.error?.issues.map(({ message }) => message)).toEqual([
    "Address must not contain a user or a password: enter an API key instead.",
  ]);
  expect(JSON.stringify(newModelFields(typed, {}))).not.toContain("hidden");
  for (const model of ["gpt", "openai/", "/gpt"]) {
    expect(newModel.safeParse({ ...typed, model }).success).toBe(false);
  }
  const good = newModel.parse({
    ...typed,
    api_base: "http://host:1234",
    local: "true",
  });
  expect(newModelBody(good)).toEqual({
    model_name: "mine",
    provider_params: {
      model: "openai/x",
      api_base: "http://host:1234",
      api_key: "sk-hidden",
      local: true,
    },
    model_info: { mode: "chat" },
  });
});

test("found models are added once, whatever their address is called", () => {
  const runner = {
    name: "Ollama",
    address: "http://localhost:11434",
    apiBase: "http://localhost:11434",
    provider: "ollama" as const,
    models: ["llama3.2", "new"],
  };
  const known = {
    ...deployment("mine"),
    provider_params: {
      model: "ollama/llama3.2",
      api_base: "http://127.0.0.1:11434/v1",
    },
  };
  const { title, runners } = viewFound([runner], [known], null);
  expect(title).toBe("2 models of 1 runner found.");
  expect(runners[0]?.models.map(({ name, note }) => [name, note])).toEqual([
    ["llama3.2", "already configured"],
    ["new", null],
  ]);
  expect(viewFound([], [], "http://nowhere").advice).toContain(
    "http://nowhere did not answer",
  );
});
