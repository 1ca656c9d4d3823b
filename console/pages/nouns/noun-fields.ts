import { z } from "zod";
import { capital } from "../../../core/words.ts";
import type { Fields } from "../../http/forms.ts";
import { Failure } from "../../../core/failure.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { withTyped, type Field } from "../field.ts";
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
  /** Set only when the object is created. */
  readonly newOnly?: boolean;
  /** It must be given when the object is created. */
  readonly required?: boolean;
  /** The query parameter of the form's address that fills it in. */
  readonly preset?: string;
  /** Suggested values; others may be typed. */
  readonly suggestions?: (context: NounContext) => Promise<readonly string[]>;
  /** The values of a choice, each with its words. */
  readonly choices?: (shown: FieldContext) => readonly Choice[];
  /** For a field that holds an id, while people read and type names: the name in a row, and the id of a typed name. */
  readonly named?: {
    readonly nameIn: (row: Readonly<Record<string, unknown>>) => string;
    /** Throws a Refusal for an unknown name. */
    readonly idOf: (context: NounContext, name: string) => Promise<string>;
  };
  /** Whether another object than `row` has the typed value already: it has to be unique here, although the gateway allows several. */
  readonly isTaken?: (
    context: NounContext,
    typed: string,
    row: FieldContext["row"],
  ) => Promise<boolean>;
  /** The value for the gateway; undefined leaves the field unchanged. Default: the typed value, or null, which resets the field. */
  readonly body?: (typed: string | undefined) => unknown;
}

export type Choice = readonly [value: string, words: string];

export interface FieldContext {
  /** The object to change; null for a new one. */
  readonly row: Readonly<Record<string, unknown>> | null;
  readonly typed: Fields;
  readonly timeZone: string;
}

type Mistakes = Readonly<Record<string, string>>;

/** A submitted form: the typed values and the mistakes in them. */
export interface Filled {
  readonly typed: Fields;
  readonly mistakes: Mistakes;
  /** Of the answer that shows it; 400 for mistakes and otherwise 200 when left out. */
  readonly status?: number;
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
      message: "Must be a number, for example 5 or 0.5.",
    });
    return z.NEVER;
  })
  .optional();

/** The radio buttons send `every_model`, the checkboxes `models`. */
const modelChoice = {
  every_model: z.enum(["all", "some"]).default("some"),
  models: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat())
    .optional(),
};

export type FieldValues = Readonly<Record<string, unknown>>;

/** The fields of the form for a new or an existing object. */
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

/** The name of the field with the values that a form showed at first. */
export const SHOWN = "shown";

const shownValues = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: "custom", message: "invalid JSON" });
      return z.NEVER;
    }
  })
  .pipe(z.record(z.string(), z.unknown()));

/**
 * The fields of a submitted form that differ from what it showed at first: others may have been changed meanwhile, in another
 * tab or by another person. All, where the form does not say what it showed.
 */
export function changedFields(
  fields: readonly NounField[],
  sent: unknown,
): readonly NounField[] {
  const values = (sent ?? {}) as Readonly<Record<string, unknown>>;
  const shown = shownValues.safeParse(values[SHOWN]);
  return shown.success
    ? fields.filter(({ name, type }) =>
        (type === "models" ? ["every_model", "models"] : [name]).some(
          (each) => textOf(shown.data[each]) !== textOf(values[each]),
        ),
      )
    : fields;
}

/** A value, or several in any order, as one text. */
function textOf(value: unknown): string {
  return [value ?? []].flat().map(String).sort().join("\n");
}

/** The body for the gateway. Throws a refusal when no model is selected. */
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

/** Throws a Refusal for a value that another object has already. */
export async function needUntaken(
  context: NounContext,
  fields: readonly NounField[],
  row: FieldContext["row"],
  body: FieldValues,
): Promise<void> {
  for (const { name, isTaken } of fields) {
    const typed = body[name];
    if (typeof typed === "string" && (await isTaken?.(context, typed, row))) {
      throw new Refusal("Already exists: choose another one.", 400, name);
    }
  }
}

/** The body with ids in place of typed names. A name that did not change keeps its id. Throws a Refusal for an unknown one. */
export async function withIds(
  context: NounContext,
  fields: readonly NounField[],
  row: FieldContext["row"],
  body: FieldValues,
): Promise<FieldValues> {
  const ids: Record<string, unknown> = {};
  for (const { name, named } of fields) {
    const typed = body[name];
    if (named !== undefined && typeof typed === "string" && typed !== "") {
      ids[name] =
        row !== null && named.nameIn(row) === typed
          ? row[name]
          : await named.idOf(context, typed);
    }
  }
  return { ...body, ...ids };
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

/** An empty list allows all models. */
function modelsIn({ every_model: every, models }: FieldValues): unknown {
  if (every === "all") {
    return [];
  }
  if (Array.isArray(models) && models.length > 0) {
    return models;
  }
  throw new Refusal("Select at least one model, or all models.", 400, "models");
}

/**
 * The submitted form with the reason why nothing changed: a rejection at the field that the gateway names, anything else above the
 * form. `fieldOf` returns the field of a parameter. Rethrows bugs.
 */
export function failedForm(
  error: unknown,
  typed: unknown,
  fieldOf: (param: string) => string | undefined,
): Filled {
  if (!(error instanceof Failure)) {
    throw error;
  }
  const sent = (typed ?? {}) as Fields;
  const isRejected = error instanceof Refusal && error.status < 500;
  const field = isRejected ? fieldOf(error.param ?? "") : undefined;
  return {
    typed: sent,
    mistakes:
      field === undefined
        ? { form: capital(error.sentences.join(" ")) }
        : { [field]: withoutField(error.message) },
    status: isRejected ? 400 : 502,
  };
}

/** The field among these that a parameter of the gateway is from. */
export function fieldAmong(
  fields: readonly Pick<NounField, "name">[],
): (param: string) => string | undefined {
  return (param) => {
    const [first] = param.split(/[.[]/);
    return fields.find(({ name }) => name === first)?.name;
  };
}

/** "`max_budget` must be …" as it is shown at the field: "Must be …". */
function withoutField(message: string): string {
  return capital(message.replace(/^`[^`]+` /, ""));
}

/** The fields as a form shows them, with values and mistakes; the choice of models is shown separately. */
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
  return withTyped(await Promise.all(views), typed, mistakes);
}

/** The fields of an empty form, without suggestions. */
export function emptyFields(
  fields: readonly NounField[],
  timeZone: string,
): readonly FieldView[] {
  return fields.map((field) =>
    viewField(field, { row: null, typed: {}, timeZone }, undefined),
  );
}

type FieldView = Field & Pick<NounField, "part">;

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

/** The current values of an object, as a form sends them. */
export function typedOf(
  row: Readonly<Record<string, unknown>>,
  fields: readonly NounField[] = [],
): Fields {
  const models = Array.isArray(row["models"]) ? row["models"].map(String) : [];
  return {
    ...Object.fromEntries(
      Object.entries(row).flatMap(([name, value]) =>
        typeof value === "string" || typeof value === "number"
          ? [[name, String(value)]]
          : [],
      ),
    ),
    ...Object.fromEntries(
      fields.flatMap(({ name, named }) =>
        named === undefined ? [] : [[name, named.nameIn(row)]],
      ),
    ),
    every_model: models.length === 0 ? "all" : "some",
    models,
  };
}
