import { z } from "zod";
import { isDay } from "../../../core/words.ts";
import { faultOfName } from "../../ledger/names.ts";
import {
  parseBudgetDuration,
  parseLifetime,
  withoutWord,
} from "../../ledger/budget-durations.ts";

/** Values of requests; messages complete the sentence that starts with the name of the field. */

const nameOrEmpty = z
  .string()
  .max(256, "must have at most 256 characters")
  .superRefine((text, context) => {
    const fault = faultOfName(text);
    if (fault !== null) {
      context.addIssue({ code: "custom", message: fault });
    }
  });
export const name = nameOrEmpty.min(1, "must not be empty");
/** What an object may belong to; an empty text means none, as in LiteLLM. */
export const reference = nameOrEmpty.transform((text) =>
  text === "" ? null : text,
);
/** An id that is part of other names, where a slash is the separator. */
export const plainName = name.regex(/^[^/]*$/, "must not contain a slash");
export const names = z
  .array(name)
  .max(1_000, "must have at most 1,000 entries");
export const someNames = names.min(1, "must have at least one entry");
export const dollars = alsoAsText(
  z
    .number("must be a number of dollars")
    .min(0, "must be at least 0 dollars")
    .max(9_000_000, "must be at most 9,000,000 dollars"),
);
export const spent = dollars.nullish();
const wholeNumber = z
  .int({
    error: ({ code }) =>
      code === "too_big"
        ? "must be at most 9,007,199,254,740,991"
        : "must be a whole number of at least 0",
  })
  .min(0, "must be a whole number of at least 0");
export const perMinute = alsoAsText(wholeNumber);
export const atOnce = alsoAsText(
  wholeNumber.max(2_147_483_647, "must be at most 2,147,483,647"),
);

const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i;

/** LiteLLM's documentation writes some numbers as texts. */
function alsoAsText<Schema extends z.ZodType<number>>(schema: Schema) {
  return z.preprocess(
    (value) =>
      typeof value === "string" && NUMBER.test(value) ? Number(value) : value,
    schema,
  );
}

export const models = z.array(name);
export const object = z.record(z.string(), z.unknown());
export const texts = z.record(z.string(), z.string());
export const flag = z.boolean();
const isTime = (text: string) =>
  z.iso.datetime({ offset: true }).safeParse(text).success;
/** A day is its first moment, and a time without a zone is in UTC, as in LiteLLM. */
export const moment = z
  .string()
  .overwrite((text) => (isDay(text) ? `${text}T00:00:00` : text))
  .overwrite((text) => (isTime(`${text}Z`) ? `${text}Z` : text))
  .refine(
    isTime,
    "must be a time such as 2026-11-21T12:00:00Z, or a day such as 2026-11-21",
  )
  .meta({ format: "date-time" });

/** `30s`, `15m`, `24h`, `30d`, `1w`, `1mo`; LiteLLM also writes `monthly`. */
const duration = durationBy(parseBudgetDuration);
/** Of a budget: an empty text changes nothing, as in LiteLLM. */
export const resetInterval = durationBy((text) =>
  text === "" ? { ok: true } : parseBudgetDuration(text),
).transform((text) => (text === "" ? undefined : text));
/** Of a key or a secret; `0s` ends it at once. */
export const lifetime = durationBy(parseLifetime);

function durationBy(
  parse: (
    text: string,
  ) => { readonly ok: true } | { readonly ok: false; readonly error: string },
) {
  return z
    .string()
    .overwrite(withoutWord)
    .superRefine((text, context) => {
      const parsed = parse(text);
      if (!parsed.ok) {
        context.addIssue({ code: "custom", message: parsed.error });
      }
    });
}

/** Calls count by the name that they use, so that values of a wildcard would never apply. */
function faultOfModel(alias: string): string | null {
  return alias.includes("*")
    ? "is a pattern: name each model as calls do"
    : faultOfName(alias);
}

/** Values by alias. */
function byModel<Value extends z.ZodType>(value: Value) {
  return z.record(z.string(), value).superRefine((given, context) => {
    for (const alias of Object.keys(given)) {
      const fault = faultOfModel(alias);
      if (fault !== null) {
        context.addIssue({
          code: "custom",
          message: `has a model whose name ${fault}`,
        });
      }
    }
  });
}

/** The budget of an alias: `{budget_limit, time_period}`; LiteLLM also writes `{max_budget, budget_duration}` and a bare number. */
export const modelBudgets = byModel(
  z
    .union(
      [
        z.object({ budget_limit: dollars, time_period: duration.nullish() }),
        z.object({ max_budget: dollars, budget_duration: duration.nullish() }),
        dollars,
      ],
      {
        error:
          'must be {"budget_limit": dollars of at least 0, "time_period": "1d"}',
      },
    )
    .transform((budget) => {
      if (typeof budget === "number") {
        return { budget_limit: budget };
      }
      return "budget_limit" in budget
        ? budget
        : {
            budget_limit: budget.max_budget,
            time_period: budget.budget_duration,
          };
    }),
);

export const modelRates = byModel(perMinute);

export const queryFlag = z
  .enum(["true", "false", "True", "False", "1", "0"], "must be true or false")
  // Generated clients send it like any other flag.
  .meta({ type: "boolean", enum: undefined })
  .transform((text) => ["true", "True", "1"].includes(text));

/** A number of a query from `min` to `max`. */
export function queryNumber(min: number, max: number, fallback: number) {
  return numberOfQuery(min, max, { default: fallback }).default(fallback);
}

/** The same without a default. */
export function queryLimit(max: number, min = 1) {
  return numberOfQuery(min, max).optional();
}

function numberOfQuery(min: number, max: number, more: object = {}) {
  return (
    z
      // A parameter that is given twice is a list.
      .string("must be one whole number")
      .regex(/^\d{1,9}$/, "must be a whole number")
      .meta({
        type: "integer",
        pattern: undefined,
        minimum: min,
        maximum: max,
        ...more,
      })
      .transform(Number)
      .refine(
        (number) => number >= min && number <= max,
        `must be from ${min} to ${max}`,
      )
  );
}

/** A day of a query, `2026-11-21`; a time after it is ignored. */
export const queryDay = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d([T ].*)?$/, "must be a day such as 2026-11-21")
  .transform((text) => text.slice(0, "2026-11-21".length))
  .refine(isDay, "must be a day of the calendar");

/** Several names of a query: a repeated parameter, or separated by commas. */
export const queryNames = z
  .union([z.string(), z.array(z.string())])
  .transform((value) =>
    [value]
      .flat()
      .flatMap((text) => text.split(","))
      .map((text) => text.trim())
      .filter((text) => text !== ""),
  );
