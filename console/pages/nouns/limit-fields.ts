import { grouped, readable } from "../../../core/words.ts";
import type { Model } from "../../../supervisor/gateway/first-call.ts";
import type { Choice, Filled, NounField } from "./noun-fields.ts";

/** When a budget resets: as the gateway writes it, and in words. */
const WINDOWS: readonly Choice[] = [
  ["", "never"],
  ["1d", "daily"],
  ["1w", "weekly, on Monday"],
  ["1mo", "monthly, on the 1st"],
];

export const BUDGET_FIELD: NounField = {
  name: "max_budget",
  label: "Budget (USD)",
  note: "Leave empty for unlimited.",
  type: "number",
};

export const WINDOW_FIELD = windowField("budget_duration", "Budget resets");

/** A choice of when a budget resets. */
export function windowField(name: string, label: string): NounField {
  return {
    name,
    label,
    type: "choice",
    choices: ({ typed }) => {
      const window = String(typed[name] ?? "");
      const isKnown = WINDOWS.some(([value]) => value === window);
      const words = window === "-1" ? "never, whatever its tier says" : window;
      return isKnown ? WINDOWS : [...WINDOWS, [window, words]];
    },
  };
}

const RATE_FIELDS: readonly NounField[] = [
  { name: "rpm_limit", label: "Requests per minute" },
  { name: "tpm_limit", label: "Tokens per minute" },
  { name: "max_parallel_requests", label: "Parallel requests" },
].map((field) => ({
  ...field,
  note: "Leave empty for unlimited.",
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
        value: typeof limit === "number" ? grouped(limit) : "unlimited",
      };
    }),
    {
      name: "Models",
      value: models.length === 0 ? "all" : models.map(readable).join(", "),
    },
  ];
}

/** The choice of models: all, or the selected ones. */
interface ModelsView {
  readonly all: boolean;
  readonly models: readonly {
    readonly id: string;
    readonly selected: boolean;
    readonly note: string;
  }[];
  readonly mistake: string | undefined;
}

export function viewModels(
  known: readonly Model[],
  { typed, mistakes }: Filled,
): ModelsView {
  const selected = new Set([typed["models"] ?? []].flat());
  const ids = new Set(known.map(({ id }) => id));
  const others = [...selected].filter((id) => !ids.has(id));
  return {
    all: (typed["every_model"] ?? "all") === "all",
    models: [
      ...known.map(({ id, note }) => ({
        id,
        selected: selected.has(id),
        note,
      })),
      ...others.map((id) => ({
        id,
        selected: true,
        note: "no longer configured",
      })),
    ],
    mistake: mistakes["models"],
  };
}
