import { expect, test } from "vitest";
import { hashKey } from "../access/keys.ts";
import { budgetOf, endUserOf, keyOf, teamOf, userOf } from "./convert.ts";
import { listOthers } from "./list-others.ts";
import { createNotes, type Notes } from "./import-notes.ts";
import type { SourceTable } from "./source.ts";

const KEY = { token: hashKey("sk-imported"), key_name: "sk-...rted" };

function textsOf(convert: (notes: Notes) => unknown): readonly string[] {
  const notes = createNotes();
  convert(notes);
  return notes.remarks().map(({ text }) => text);
}

test.each([
  [{ project_id: "p" }, "keys: projects are not imported"],
  [{ agent_id: "a" }, "keys: agents are not imported"],
  [{ tpd_limit: 5 }, "keys: `tpd_limit` is not supported"],
  [{ budget_fallbacks: { a: ["b"] } }, "keys: `budget_fallbacks`"],
  [
    { allowed_routes: ["openai_routes"] },
    "keys: `openai_routes` allows nothing",
  ],
  [{ metadata: { tag_rpm_limit: { red: 1 } } }, "keys: `tag_rpm_limit`"],
  [{ metadata: { end_user_budget_id: "tier" } }, "keys: `end_user_budget_id`"],
  [{ metadata: { model_otpm_limit: { a: 1 } } }, "keys: `model_otpm_limit`"],
  [{ metadata: { policies: ["strict"] } }, "keys: policies are not supported"],
  [{ metadata: { max_iterations: 9 } }, "keys: `max_iterations`"],
])("a key with %j is reported: it could do more than before", (row, text) => {
  expect(textsOf((notes) => keyOf({ ...KEY, ...row }, notes))).toEqual([
    expect.stringContaining(text),
  ]);
});

test.each([
  [
    { auto_rotate: true, rotation_interval: "30d" },
    "not rotated on a schedule",
  ],
  [{ router_settings: { num_retries: 3 } }, "`router_settings`"],
])("a key with %j is reported: it would do less than before", (row, text) => {
  expect(textsOf((notes) => keyOf({ ...KEY, ...row }, notes))).toEqual([
    expect.stringContaining(text),
  ]);
});

test("what is switched off or empty is not reported", () => {
  const row = {
    auto_rotate: false,
    rotation_interval: "30d",
    router_settings: {},
    metadata: { require_trace_id: false, logging: [] },
  };
  expect(textsOf((notes) => keyOf({ ...KEY, ...row }, notes))).toEqual([]);
});

test.each([
  { logging: [{ callback_vars: { langfuse_secret_key: "sk-lf" } }] },
  { callback_settings: { callback_vars: { langfuse_secret_key: "sk-lf" } } },
])(
  "callbacks in metadata are reported, and their secrets not imported",
  (callbacks) => {
    const row = { team_id: "t", metadata: { ...callbacks, cost_center: "7" } };
    const notes = createNotes();
    const kept = { cost_center: "7" };
    expect(keyOf({ ...KEY, ...row }, notes)).toHaveProperty(
      "row.metadata",
      kept,
    );
    expect(teamOf(row, {}, {}, notes)).toHaveProperty("metadata", kept);
    expect(notes.remarks().map(({ text }) => text)).toEqual([
      expect.stringMatching(/^keys: callbacks are not imported/),
      expect.stringMatching(/^teams: callbacks are not imported/),
    ]);
  },
);

test("limits of models that a team or a user has are reported", () => {
  const row = { metadata: { model_rpm_limit: { a: 1 } }, model_max_budget: {} };
  const says = (kind: string) => [
    `${kind}s: \`model_rpm_limit\` of a ${kind} is not supported: set it on its keys`,
  ];
  expect(
    textsOf((notes) => teamOf({ team_id: "t", ...row }, {}, {}, notes)),
  ).toEqual(says("team"));
  expect(textsOf((notes) => userOf({ user_id: "u", ...row }, notes))).toEqual(
    says("user"),
  );
});

test.each([
  [{ scim_active: false }, true],
  ['{"scim_active":false}', true],
  [{ scim_active: true }, false],
  [{}, false],
])("of a user with the metadata %j, blocked is %j", (metadata, blocked) => {
  expect(userOf({ user_id: "u", metadata }, createNotes())).toMatchObject({
    blocked,
  });
});

test("a budget that LiteLLM resets monthly is imported with its reset", () => {
  const notes = createNotes();
  const row = { budget_id: "b", max_budget: 5, budget_duration: "monthly" };
  expect(budgetOf(row, notes)).toMatchObject({ budget_duration: "30d" });
  expect(notes.remarks()).toEqual([]);
});

test.each([
  ["2026-12-01T00:00:00", "2026-12-01T00:00:00Z"],
  ["2026-12-01T00:00:00.5+02:00", "2026-11-30T22:00:00.5Z"],
  ["2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"],
])("a key's temporary raise until %s is imported", (until, moment) => {
  const metadata = { temp_budget_increase: 5, temp_budget_expiry: until };
  expect(keyOf({ ...KEY, metadata }, createNotes())).toMatchObject({
    row: { temp_budget_increase: 5, temp_budget_expiry: new Date(moment) },
  });
});

test.each([
  {},
  { temp_budget_increase: 5 },
  { temp_budget_increase: 5, temp_budget_expiry: "soon" },
  { temp_budget_expiry: "2026-12-01T00:00:00Z" },
])("%j is no temporary raise", (metadata) => {
  const read = keyOf({ ...KEY, metadata }, createNotes());
  expect(read).not.toHaveProperty("row.temp_budget_increase");
  expect(read).not.toHaveProperty("row.temp_budget_expiry");
});

test("a tier's limit per day and temporary raise, and an end user's models are reported", () => {
  const tier = { budget_id: "b", tpd_limit: "9", temp_budget_increase: 5 };
  expect(textsOf((notes) => budgetOf(tier, notes))).toEqual([
    expect.stringContaining("temporary raises of team members"),
    expect.stringContaining("`tpd_limit`"),
  ]);
  expect(
    textsOf((notes) => endUserOf({ user_id: "e", models: ["a"] }, notes)),
  ).toEqual([expect.stringContaining("`models` of an end user")]);
});

test("settings, guardrails and other objects of LiteLLM's database are listed, its own counters are not", async () => {
  const rows: Partial<Record<SourceTable, readonly object[]>> = {
    settings: [
      { param_name: "router_settings", param_value: { num_retries: 3 } },
      { param_name: "litellm_settings", param_value: {} },
      { param_name: "auto_router_tuning_baseline_v3", param_value: { a: 1 } },
    ],
    guardrails: [{ guardrail_name: "pii" }],
    projects: [{ project_id: "p" }],
    policies: [{ policy_name: "strict" }],
    tokenKeys: [{ jwt_claim_name: "sub", jwt_claim_value: "anna" }],
    mcpServers: [{ server_id: "mail" }],
  };
  const notes = createNotes();
  await listOthers(
    {
      rows: async (table) => (rows[table] ?? []) as never,
      count: async () => 0,
      logsAfter: async () => [],
      close: async () => undefined,
    },
    notes,
  );
  expect(
    notes.remarks().map(({ text, examples }) => [text.split(":")[0], examples]),
  ).toEqual([
    ["settings", ["router_settings"]],
    ["guardrails", ["pii"]],
    ["projects", ["p"]],
    ["policies", ["strict"]],
    ["keys of tokens (JWT)", ["anna"]],
    ["MCP servers", ["mail"]],
  ]);
});

test("the tier of a team's members becomes the limits that they have by default", () => {
  const tier = {
    max_budget: 5,
    budget_duration: "monthly",
    tpm_limit: 1_000,
    rpm_limit: "10",
  };
  expect(teamOf({ team_id: "t" }, {}, tier, createNotes())).toMatchObject({
    team_member_budget: 5,
    team_member_budget_duration: "30d",
    team_member_tpm_limit: 1_000,
    team_member_rpm_limit: 10,
    budget_duration: null,
  });
});
