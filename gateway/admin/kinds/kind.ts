import { z } from "zod";
import type { Row } from "../../database/rows.ts";
import { outputOf, type Fields } from "./field.ts";
import { out } from "./out.ts";

/** A noun: what it is called in the database, in the ledger and in sentences, and its fields. */
export interface Kind {
  readonly table: string;
  /** In the audit log and in sentences. */
  readonly noun: string;
  /** Columns of the primary key, in the order in which the ledger names them. */
  readonly id: readonly string[];
  /** The field of a request that names one. */
  readonly field: string;
  /** The route that creates one. */
  readonly createdBy: string;
  /** `team` of the ledger's names; null: has no separate spend. */
  readonly entity: string | null;
  /** Answers show its limits in `litellm_budget_table` too. */
  readonly showsBudgetTable?: true;
  readonly fields: Fields;
}

/** What the ledger calls a payer: `member:team/user`. */
export function entityOf(of: Kind, row: Row): string {
  return `${of.entity}:${nameOf(of, row)}`;
}

/** The primary key of a row. */
export function idOf({ id }: Kind, row: Row): Row {
  return Object.fromEntries(id.map((column) => [column, row[column]]));
}

export function nameOf({ id }: Kind, row: Row): string {
  return id.map((column) => String(row[column])).join("/");
}

/** In the budget's window if there is one, else in total. */
const SPENT = {
  spend: out.dollars,
  budget_reset_at: out.moment.nullable(),
} as const;

/** The limits in force as LiteLLM's clients look for them, since it keeps them in a tier; null: there are none. */
const BUDGET_TABLE = {
  litellm_budget_table: z
    .object({
      budget_id: out.text.nullable(),
      max_budget: out.dollars.nullable(),
      soft_budget: out.dollars.nullable(),
      budget_duration: out.text.nullable(),
      budget_reset_at: out.moment.nullable(),
      tpm_limit: out.count.nullable(),
      rpm_limit: out.count.nullable(),
      max_parallel_requests: out.count.nullable(),
    })
    .meta({ id: "BudgetTable" })
    .nullable(),
} as const;

/** What answers show of a row: its columns, and the spend of a noun that pays. */
export function rowOf({
  fields,
  entity,
  showsBudgetTable,
}: Kind): Readonly<Record<string, z.ZodType>> {
  return {
    ...outputOf(fields),
    ...(entity === null ? {} : SPENT),
    ...(showsBudgetTable === true ? BUDGET_TABLE : {}),
  };
}

/** The budget in force: its own, else its tier's, with a temporary increase. */
export const IN_FORCE = { budget_in_force: out.dollars.nullable() } as const;
