import { grouped, readable } from "../../../core/words.ts";
import type { Model } from "../../../supervisor/gateway/first-call.ts";
import type { Choice, Filled, NounField } from "./noun-fields.ts";

/** When a budget begins anew: as the gateway writes it, and in words. */
const WINDOWS: readonly Choice[] = [
  ["", "never: it is for the whole life"],
  ["1d", "each day"],
  ["1w", "each week, on Monday"],
  ["1mo", "each month, on the first"],
];

export const BUDGET_FIELD: NounField = {
  name: "max_budget",
  label: "Budget, in dollars",
  note: "What it may spend; empty: as much as it likes.",
  type: "number",
};

export const WINDOW_FIELD: NounField = {
  name: "budget_duration",
  label: "The budget begins anew",
  type: "choice",
  choices: ({ typed }) => {
    const window = String(typed["budget_duration"] ?? "");
    const isKnown = WINDOWS.some(([value]) => value === window);
    return isKnown ? WINDOWS : [...WINDOWS, [window, window]];
  },
};

const RATE_FIELDS: readonly NounField[] = [
  { name: "rpm_limit", label: "Requests a minute" },
  { name: "tpm_limit", label: "Tokens a minute" },
  { name: "max_parallel_requests", label: "Calls at the same time" },
].map((field) => ({
  ...field,
  note: "Empty: no limit.",
  type: "number",
  part: "Limits",
}));

/** What limits every key, user and team. */
export const LIMIT_FIELDS: readonly NounField[] = [
  { ...BUDGET_FIELD, part: "Budget" },
  { ...WINDOW_FIELD, part: "Budget" },
  { name: "models", label: "Models", type: "models", part: "Models" },
  ...RATE_FIELDS,
];

/** The limits besides the budget, as figures. */
export function limitFigures(row: Readonly<Record<string, unknown>>): readonly {
  readonly name: string;
  readonly value: string;
}[] {
  const models = Array.isArray(row["models"]) ? row["models"].map(String) : [];
  return [
    ...RATE_FIELDS.map(({ name, label }) => {
      const limit = row[name];
      return {
        name: label,
        value: typeof limit === "number" ? grouped(limit) : "no limit",
      };
    }),
    {
      name: "Models",
      value: models.length === 0 ? "all" : models.map(readable).join(", "),
    },
  ];
}

/** Choosing models: all, or the ticked ones. */
export interface ModelsView {
  readonly all: boolean;
  readonly models: readonly {
    readonly id: string;
    readonly ticked: boolean;
    readonly note: string;
  }[];
  readonly mistake: string | undefined;
}

export function viewModels(
  known: readonly Model[],
  { typed, mistakes }: Filled,
): ModelsView {
  const ticked = new Set([typed["models"] ?? []].flat());
  const ids = new Set(known.map(({ id }) => id));
  const others = [...ticked].filter((id) => !ids.has(id));
  return {
    all: (typed["every_model"] ?? "all") === "all",
    models: [
      ...known.map(({ id, pending }) => ({
        id,
        ticked: ticked.has(id),
        note: pending ? "waits for its key or address" : "",
      })),
      ...others.map((id) => ({ id, ticked: true, note: "no alias of now" })),
    ],
    mistake: mistakes["models"],
  };
}
