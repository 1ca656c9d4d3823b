import { expect, test } from "vitest";
import { Failure } from "../../../core/failure.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { KEY_FIELDS } from "./key-noun.ts";
import { LIMIT_FIELDS, viewModels, WINDOW_FIELD } from "./limit-fields.ts";
import type { NounContext } from "./noun-context.ts";
import {
  bodyOf,
  changedFields,
  failedForm,
  fieldAmong,
  schemaOf,
  typedOf,
  withIds,
  type NounField,
} from "./noun-fields.ts";

const form = schemaOf(LIMIT_FIELDS);
const aliasField: NounField = { name: "user_alias", label: "Full name" };

test("empty fields are reset, and all models are an empty list", () => {
  const fields = form.parse({
    max_budget: " 5 ",
    rpm_limit: "60",
    every_model: "all",
    models: "a",
  });
  expect(bodyOf([aliasField, ...LIMIT_FIELDS], fields)).toEqual({
    user_alias: null,
    max_budget: 5,
    budget_duration: null,
    rpm_limit: 60,
    tpm_limit: null,
    max_parallel_requests: null,
    models: [],
  });
  expect(
    bodyOf(LIMIT_FIELDS, form.parse({ models: ["a", "b"] })),
  ).toMatchObject({ models: ["a", "b"] });
  expect(() => bodyOf(LIMIT_FIELDS, form.parse({}))).toThrow(
    "Select at least one model, or all models.",
  );
});

test("only fields that differ from what the form showed are changed", () => {
  const shown = typedOf({ max_budget: 5, models: ["a", "b"] });
  const changed = (sent: object) =>
    changedFields(LIMIT_FIELDS, sent).map(({ name }) => name);
  const sent = {
    shown: JSON.stringify(shown),
    max_budget: "5",
    budget_duration: "",
    rpm_limit: "7",
    tpm_limit: "",
    max_parallel_requests: "",
    every_model: "some",
    models: ["b", "a"],
  };
  expect(changed(sent)).toEqual(["rpm_limit"]);
  expect(changed({ ...sent, max_budget: "", models: "a" })).toEqual([
    "max_budget",
    "models",
    "rpm_limit",
  ]);
  const all = LIMIT_FIELDS.map(({ name }) => name);
  expect(changed({ ...sent, shown: undefined })).toEqual(all);
  expect(changed({ ...sent, shown: "no JSON" })).toEqual(all);
});

test("a key's expiry is sent only when it changes", () => {
  const body = (duration?: string) =>
    bodyOf(
      KEY_FIELDS,
      schemaOf(KEY_FIELDS).parse({ every_model: "all", duration }),
    );
  expect(body()).not.toHaveProperty("duration");
  expect(body("30d")).toMatchObject({ duration: "30d" });
  expect(body("never")).toMatchObject({ duration: null });
});

test("an invalid number is a mistake of its field", () => {
  expect(form.safeParse({ max_budget: "lots" }).error?.issues).toMatchObject([
    { path: ["max_budget"], message: expect.stringContaining("a number") },
  ]);
});

test("a failed form keeps what was typed, with a rejection at its field and any other reason above it; bugs are rethrown", () => {
  const typed = { max_budget: "-1" };
  const failed = (error: unknown, fields = LIMIT_FIELDS) =>
    failedForm(error, typed, fieldAmong(fields));
  const rejected = (param: string | null, status = 400) =>
    failed(new Refusal("No.", status, param));
  expect(rejected("max_budget")).toEqual({
    typed,
    mistakes: { max_budget: "No." },
    status: 400,
  });
  expect(rejected("models[0]").mistakes).toEqual({ models: "No." });
  expect(rejected("metadata").mistakes).toEqual({ form: "No." });
  expect(rejected(null).mistakes).toEqual({ form: "No." });
  expect(rejected("max_budget", 503)).toEqual({
    typed,
    mistakes: { form: "No." },
    status: 502,
  });
  const low = new Refusal(
    "`max_budget` must be at least 0 dollars.",
    400,
    "max_budget",
  );
  expect(failed(low).mistakes).toEqual({
    max_budget: "Must be at least 0 dollars.",
  });
  expect(failed(low, []).mistakes).toEqual({ form: low.message });
  expect(failed(new Failure("the gateway is away."))).toEqual({
    typed,
    mistakes: { form: "The gateway is away." },
    status: 502,
  });
  expect(() => failed(new TypeError("a bug"))).toThrow("a bug");
});

test("current values fill the form, including models and windows that are no longer offered", () => {
  const typed = typedOf({ max_budget: 5, models: ["old"], blocked: false });
  expect(typed).toEqual({
    max_budget: "5",
    every_model: "some",
    models: ["old"],
  });
  expect(
    viewModels([{ id: "new", pending: true, note: "waits" }], {
      typed,
      mistakes: {},
    }),
  ).toEqual({
    all: false,
    models: [
      { id: "new", selected: false, note: "waits" },
      { id: "old", selected: true, note: "no longer configured" },
    ],
    mistake: undefined,
  });
  const choices = (budget_duration: string) =>
    WINDOW_FIELD.choices?.({
      typed: { budget_duration },
      row: null,
      timeZone: "UTC",
    });
  expect(choices("36h")).toContainEqual(["36h", "36h"]);
  expect(choices("-1")).toContainEqual(["-1", "never, whatever its tier says"]);
});

test("a typed name becomes an id; a name that did not change keeps its id", async () => {
  const field: NounField = {
    name: "team_id",
    label: "Team",
    named: {
      nameIn: ({ team_alias }) => String(team_alias),
      idOf: async (_context, name) => `id of ${name}`,
    },
  };
  const context = {} as NounContext;
  const row = { team_id: "t-1", team_alias: "Kitchen" };
  expect(typedOf(row, [field])["team_id"]).toBe("Kitchen");
  const ids = (typed: string | undefined, before: typeof row | null) =>
    withIds(context, [field], before, { team_id: typed });
  expect(await ids("Kitchen", row)).toEqual({ team_id: "t-1" });
  expect(await ids("Garage", row)).toEqual({ team_id: "id of Garage" });
  expect(await ids("Kitchen", null)).toEqual({ team_id: "id of Kitchen" });
  expect(await ids(undefined, row)).toEqual({ team_id: undefined });
});
