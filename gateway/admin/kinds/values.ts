import { z } from "zod";
import { faultOfName } from "../../ledger/names.ts";
import { parseDuration } from "../../ledger/windows.ts";

/** Values that requests send, with the sentence for a wrong one. */

export const name = z
  .string()
  .min(1, "it must not be empty")
  .max(256, "it may have at most 256 characters")
  .superRefine((text, context) => {
    const fault = faultOfName(text);
    if (fault !== null) {
      context.addIssue({ code: "custom", message: `it ${fault}` });
    }
  });
/** An id that is part of other names: a slash would make two of them one. */
export const plainName = name.regex(/^[^/]*$/, "it must not contain a slash");
export const names = z.array(name).max(1_000, "at most 1,000 at once");
export const someNames = names.min(1, "name at least one");
export const dollars = z
  .number("it must be a number of dollars")
  .min(0, "a budget is at least 0 dollars")
  .max(9_000_000, "a budget is at most 9,000,000 dollars");
export const spent = z
  .number()
  .min(0, "a spend is at least 0 dollars")
  .nullish();
export const perMinute = z
  .int("a limit is a whole number of at least 0")
  .min(0, "a limit is a whole number of at least 0");
export const atOnce = perMinute.max(
  2_147_483_647,
  "a limit of parallel requests is at most 2,147,483,647",
);
export const models = z.array(name);
export const object = z.record(z.string(), z.unknown());
export const texts = z.record(z.string(), z.string());
export const flag = z.boolean();
export const moment = z.iso.datetime({
  offset: true,
  error: "it must be a time such as 2026-11-21T12:00:00Z",
});

/** `30s`, `15m`, `24h`, `30d`, `1w`, `1mo`. */
export const duration = z.string().superRefine((text, context) => {
  const parsed = parseDuration(text);
  if (!parsed.ok) {
    context.addIssue({ code: "custom", message: parsed.error });
  }
});

/** Values by alias. */
function byModel<Value extends z.ZodType>(value: Value) {
  return z.record(z.string(), value).superRefine((given, context) => {
    for (const alias of Object.keys(given)) {
      const fault = faultOfName(alias);
      if (fault !== null) {
        context.addIssue({
          code: "custom",
          message: `a model's name ${fault}`,
        });
      }
    }
  });
}

/** An alias's own budget: `{budget_limit, time_period}`; LiteLLM also writes `{max_budget, budget_duration}` and a bare number. */
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
          'it must be {"budget_limit": dollars of at least 0, "time_period": "1d"}',
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

/** A flag in a query. */
export const queryFlag = z
  .enum(["true", "false", "True", "False", "1", "0"], "write true or false")
  // Clients generated from the document write it as they write flags.
  .meta({ type: "boolean", enum: undefined })
  .transform((text) => ["true", "True", "1"].includes(text));

/** A number of a query from `least` to `most`. */
export function queryNumber(least: number, most: number, otherwise: number) {
  return numberOfQuery(least, most, { default: otherwise }).default(otherwise);
}

/** The same without a value of its own where none is given. */
export function queryLimit(most: number) {
  return numberOfQuery(1, most).optional();
}

function numberOfQuery(least: number, most: number, said: object = {}) {
  return z
    .string()
    .regex(/^\d{1,9}$/, "it must be a whole number")
    .meta({
      type: "integer",
      pattern: undefined,
      minimum: least,
      maximum: most,
      ...said,
    })
    .transform(Number)
    .refine(
      (number) => number >= least && number <= most,
      `it must be from ${least} to ${most}`,
    );
}

/** A day of a query, `2026-11-21`; a time after it is cut off. */
export const queryDay = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d([T ].*)?$/, "it must be a day such as 2026-11-21")
  .transform((text) => text.slice(0, "2026-11-21".length))
  .refine(isDay, "there is no such day");

/** `Date.parse` takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** Several names of a query: repeated, or with commas between. */
export const queryNames = z
  .union([z.string(), z.array(z.string())])
  .transform((value) =>
    [value]
      .flat()
      .flatMap((text) => text.split(","))
      .map((text) => text.trim())
      .filter((text) => text !== ""),
  );
