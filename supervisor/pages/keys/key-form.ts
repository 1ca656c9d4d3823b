import { z } from "zod";
import type { UsedKeyRow } from "../../gateway/rows.ts";
import type { Field } from "../field.ts";
import {
  fill,
  limitFields,
  modelFields,
  modelsOf,
  moneyFields,
  rateFields,
  type Filled,
} from "../payers/payer-form.ts";
import { moment } from "../words.ts";

/** What the form of a key sends; the names are the gateway's. */
export const keyForm = z.object({
  key_alias: z.string().optional(),
  user_id: z.string().optional(),
  team_id: z.string().optional(),
  /** How long it works from now on: a duration, `never`, or nothing, which leaves it as it is. */
  duration: z.string().optional(),
  ...limitFields,
  ...modelFields,
});

/** Fields that a refusal of the gateway can be shown beside. */
export const keyFieldNames = [
  "key_alias",
  "user_id",
  "team_id",
  "duration",
  "max_budget",
  "budget_duration",
  "rpm_limit",
  "tpm_limit",
  "max_parallel_requests",
  "models",
];

/** The body of POST /key/generate or /key/update. */
export function keyBody({
  duration,
  every_model,
  models,
  ...fields
}: z.output<typeof keyForm>): Readonly<Record<string, unknown>> {
  const wanted = Object.fromEntries(
    keyFieldNames
      .filter((name) => name !== "duration" && name !== "models")
      .map((name) => [name, fields[name as keyof typeof fields] ?? null]),
  );
  return {
    ...wanted,
    models: modelsOf({ every_model, models }),
    ...(duration === undefined
      ? {}
      : { duration: duration === "never" ? null : duration }),
  };
}

const lives = [
  ["1d", "one day"],
  ["1w", "one week"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "one year"],
] as const;

export type KeyFormView = {
  readonly first: readonly Field[];
  readonly money: readonly Field[];
  readonly rates: readonly Field[];
};

/** The fields in the order in which they are asked for; `key` is the one that is changed. */
export function viewKeyForm(
  filled: Filled,
  choices: {
    readonly users: readonly string[];
    readonly teams: readonly string[];
  },
  key: UsedKeyRow | null,
  timeZone: string,
): KeyFormView {
  const first: readonly Field[] = [
    {
      kind: "text",
      name: "key_alias",
      label: "Name",
      note: "Whose or what it is for, such as anna-laptop. No two keys have the same.",
    },
    {
      kind: "text",
      name: "user_id",
      label: "User",
      note: "Whose spend and budget count, too; made if new. Empty: nobody.",
      among: choices.users,
    },
    {
      kind: "text",
      name: "team_id",
      label: "Team",
      note: "The team that pays; empty: none.",
      among: choices.teams,
    },
    {
      kind: "choice",
      name: "duration",
      label: "It works for",
      values: livesOf(key, timeZone),
    },
  ];
  const window = filled.typed["budget_duration"];
  return {
    first: fill(first, filled),
    money: fill(moneyFields(typeof window === "string" ? window : ""), filled),
    rates: fill(rateFields, filled),
  };
}

function livesOf(
  key: UsedKeyRow | null,
  timeZone: string,
): readonly (readonly [string, string])[] {
  const fresh = lives.map(
    ([written, words]) => [written, `${words} from now`] as const,
  );
  if (key === null) return [["", "ever"], ...fresh];
  return key.expires === null
    ? [["", "ever, as now"], ...fresh]
    : [
        ["", `until ${moment(Date.parse(key.expires), timeZone)}, as now`],
        ...fresh,
        ["never", "ever"],
      ];
}
