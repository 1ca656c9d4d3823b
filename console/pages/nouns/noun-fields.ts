import { z } from "zod";
import type { Fields } from "../../http/forms.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import type { Field } from "../field.ts";
import type { NounContext } from "./noun-context.ts";

/** A row in the table of a noun: one field of its form, from the label to the body that the gateway gets. */
export interface NounField {
  /** As the gateway names it. */
  readonly name: string;
  readonly label: string;
  readonly note?: string;
  /** A text when left out; `models` is the choice of models. */
  readonly type?: "text" | "number" | "choice" | "models";
  /** The heading that it is under; none when left out. */
  readonly part?: "Budget" | "Models" | "Limits";
  /** It can be set only when the object is created. */
  readonly newOnly?: boolean;
  /** It must be given when the object is created. */
  readonly required?: boolean;
  /** The query parameter of the form's address that fills it in. */
  readonly preset?: string;
  /** What is proposed; other words may be typed. */
  readonly suggestions?: (context: NounContext) => Promise<readonly string[]>;
  /** The values of a choice, each with its words. */
  readonly choices?: (shown: FieldContext) => readonly Choice[];
  /** What the gateway gets; undefined leaves it as it is. Left out: what was typed, and null for nothing, which sets it back. */
  readonly body?: (typed: string | undefined) => unknown;
}

export type Choice = readonly [value: string, words: string];

export interface FieldContext {
  /** What is changed; null when something is created. */
  readonly row: Readonly<Record<string, unknown>> | null;
  readonly typed: Fields;
  readonly timeZone: string;
}

type Mistakes = Readonly<Record<string, string>>;

/** What a form shows again: what was typed, and what is wrong with it. */
export interface Filled {
  readonly typed: Fields;
  readonly mistakes: Mistakes;
}

const amount = z
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

/** The radio buttons send `every_model`, the ticked boxes `models`. */
const modelChoice = {
  every_model: z.enum(["all", "some"]).default("some"),
  models: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat())
    .optional(),
};

export type FieldValues = Readonly<Record<string, unknown>>;

/** The fields that a form has: of a new object, or of one that is there. */
export function fieldsFor(
  fields: readonly NounField[],
  isNew: boolean,
): readonly NounField[] {
  return fields
    .filter(({ newOnly = false }) => isNew || !newOnly)
    .map((field) => (isNew ? field : { ...field, required: false }));
}

/** Reads what a form of these fields sends. */
export function schemaOf(fields: readonly NounField[]): z.ZodType<FieldValues> {
  const shape: Record<string, z.ZodType> = {};
  for (const field of fields) {
    if (field.type === "models") {
      Object.assign(shape, modelChoice);
    } else {
      shape[field.name] = schemaOfField(field);
    }
  }
  return z.object(shape);
}

function schemaOfField({ type, required, label }: NounField): z.ZodType {
  if (type === "number") {
    return amount;
  }
  return required === true
    ? z.string(`${label} is required.`).trim()
    : z.string().optional();
}

/** What the gateway is told. Throws a refusal when no model is chosen. */
export function bodyOf(
  fields: readonly NounField[],
  values: FieldValues,
): FieldValues {
  return Object.fromEntries(
    fields
      .map((field) => [field.name, valueOf(field, values)] as const)
      .filter(([, value]) => value !== undefined),
  );
}

function valueOf(field: NounField, values: FieldValues): unknown {
  if (field.type === "models") {
    return modelsIn(values);
  }
  const value = values[field.name];
  return field.body === undefined
    ? (value ?? null)
    : field.body(typeof value === "string" ? value : undefined);
}

/** No models are all. */
function modelsIn({ every_model: every, models }: FieldValues): unknown {
  if (every === "all") {
    return [];
  }
  if (Array.isArray(models) && models.length > 0) {
    return models;
  }
  throw new Refusal("Choose at least one model, or all.", 400, "models");
}

/** What the gateway refused, beside the field that it names, else above the form; throws on what is no refusal. */
export function mistakeOf(
  error: unknown,
  fields: readonly NounField[],
): Mistakes {
  if (!(error instanceof Refusal) || error.status >= 500) {
    throw error;
  }
  const param = error.param?.split(/[.[]/)[0] ?? "";
  const known = fields.some(({ name }) => name === param);
  return { [known ? param : "form"]: error.message };
}

/** The fields as a form shows them, filled in, each with what is wrong with it; the choice of models is shown by itself. */
export async function viewFields(
  fields: readonly NounField[],
  context: NounContext,
  row: FieldContext["row"],
  { typed, mistakes }: Filled,
): Promise<readonly FieldView[]> {
  const shown = { row, typed, timeZone: context.timeZone };
  const views = fields
    .filter(({ type }) => type !== "models")
    .map(async (field) =>
      viewField(field, shown, await field.suggestions?.(context)),
    );
  return (await Promise.all(views)).map((view) => ({
    ...view,
    value: [typed[view.name] ?? ""].flat().at(-1),
    mistake: mistakes[view.name],
  }));
}

/** The same of an empty form without suggestions. */
export function emptyFields(
  fields: readonly NounField[],
  timeZone: string,
): readonly FieldView[] {
  return fields.map((field) =>
    viewField(field, { row: null, typed: {}, timeZone }, undefined),
  );
}

export type FieldView = Field & Pick<NounField, "part">;

function viewField(
  { name, label, part, note, required, choices }: NounField,
  shown: FieldContext,
  suggestions: readonly string[] | undefined,
): FieldView {
  const common = {
    name,
    label,
    ...(part === undefined ? {} : { part }),
    ...(note === undefined ? {} : { note }),
    ...(required === undefined ? {} : { needed: required }),
  };
  if (choices !== undefined) {
    return { ...common, kind: "choice", values: choices(shown) };
  }
  return suggestions === undefined
    ? { ...common, kind: "text" }
    : { ...common, kind: "text", among: suggestions };
}

/** What an object has now, as if it had been typed. */
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
