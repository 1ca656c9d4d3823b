import { z } from "zod";
import type { Fields } from "../../http/forms.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import type { Model } from "../../../supervisor/gateway/first-call.ts";
import { withTyped, type Field } from "../field.ts";
import { WINDOWS } from "./budget.ts";

type Mistakes = Readonly<Record<string, string>>;

/** What a form shows again: what was typed, and what is wrong with it. */
export interface Filled {
  readonly typed: Fields;
  readonly mistakes: Mistakes;
}

/** Choosing models: all, or the ticked ones. */
export interface ModelsField {
  readonly all: boolean;
  readonly models: readonly {
    readonly id: string;
    readonly ticked: boolean;
    readonly note: string;
  }[];
  readonly mistake: string | undefined;
}

export const amount = z
  .string()
  .trim()
  .transform((text, context) => {
    const number = Number(text);
    if (Number.isFinite(number)) {
      return number;
    }
    context.addIssue({
      code: "custom",
      message: "It must be a number, such as 5 or 0.5.",
    });
    return z.NEVER;
  })
  .optional();
const several = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => [given].flat());

/** What limits every payer, as its form sends it: the names are the gateway's. */
export const limitFields = {
  max_budget: amount,
  budget_duration: z.string().optional(),
  rpm_limit: amount,
  tpm_limit: amount,
  max_parallel_requests: amount,
} as const;

export const modelFields = {
  every_model: z.enum(["all", "some"]).default("some"),
  models: several.optional(),
} as const;

/** The fields of every payer that a refusal of the gateway can stand beside. */
export const LIMIT_NAMES: readonly string[] = [
  ...Object.keys(limitFields),
  "models",
];

/** What the gateway is told: those of `names` and what limits every payer. null where a field was left empty, which sets it back; no models are all. */
export function bodyOf(
  fields: z.output<z.ZodObject<typeof limitFields & typeof modelFields>> &
    Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  return {
    ...Object.fromEntries(
      [...names, ...Object.keys(limitFields)].map((name) => [
        name,
        fields[name] ?? null,
      ]),
    ),
    models: modelsOf(fields),
  };
}

/** Throws a refusal when none is chosen. */
function modelsOf(chosen: {
  readonly every_model: "all" | "some";
  readonly models?: readonly string[] | undefined;
}): readonly string[] {
  if (chosen.every_model === "all") {
    return [];
  }
  if (chosen.models !== undefined && chosen.models.length > 0) {
    return chosen.models;
  }
  throw new Refusal("Choose at least one model, or all.", 400, "models");
}

/** What the gateway refused, beside the field that it names, else above the form; throws on what is no refusal. */
export function mistakeOf(error: unknown, names: readonly string[]): Mistakes {
  if (!(error instanceof Refusal) || error.status >= 500) {
    throw error;
  }
  const param = error.param?.split(/[.[]/)[0] ?? "";
  return { [names.includes(param) ? param : "form"]: error.message };
}

export function moneyFields(window: string): readonly Field[] {
  const known = WINDOWS.some(([written]) => written === window);
  return [
    {
      kind: "text",
      name: "max_budget",
      label: "Budget, in dollars",
      note: "What it may spend; empty: as much as it likes.",
    },
    {
      kind: "choice",
      name: "budget_duration",
      label: "The budget begins anew",
      values: [...WINDOWS, ...(known ? [] : ([[window, window]] as const))],
    },
  ];
}

export const RATE_FIELDS: readonly Field[] = [
  {
    kind: "text",
    name: "rpm_limit",
    label: "Requests a minute",
    note: "Empty: no limit.",
  },
  {
    kind: "text",
    name: "tpm_limit",
    label: "Tokens a minute",
    note: "Empty: no limit.",
  },
  {
    kind: "text",
    name: "max_parallel_requests",
    label: "Calls at the same time",
    note: "Empty: no limit.",
  },
];

/** The fields filled in, each with what is wrong with it. */
export function fill(
  fields: readonly Field[],
  { typed, mistakes }: Filled,
): readonly Field[] {
  return withTyped(fields, typed, mistakes);
}

/** What a payer has now, as if it had been typed. */
export function typedOf(row: Readonly<Record<string, unknown>>): Fields {
  const models = Array.isArray(row["models"]) ? row["models"].map(String) : [];
  return {
    ...Object.fromEntries(
      Object.entries(row).flatMap(([name, value]) =>
        typeof value === "string" || typeof value === "number"
          ? [[name, String(value)]]
          : [],
      ),
    ),
    every_model: models.length === 0 ? "all" : "some",
    models,
  };
}

export function viewModels(
  known: readonly Model[],
  { typed, mistakes }: Filled,
): ModelsField {
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
