import { z } from "zod";
import { out } from "./out.ts";

/** One field of a noun: what requests set, what answers show, and how Postgres stores it. */
export interface Field {
  /** What a request may send; null resets the field. Absent: only the gateway sets it. */
  readonly input?: z.ZodType;
  /** What answers show. Absent: not shown. */
  readonly output?: z.ZodType;
  /** The column as Postgres declares it. Absent: not a column. */
  readonly column?: string;
  /** Lists can be sorted by this field. */
  readonly sortable?: boolean;
  /** The `search` parameter of lists looks in this field. */
  readonly searchable?: boolean;
  /** A team's admin may set this field, not only those who pay for the team. */
  readonly byTeamAdmin?: boolean;
}

/** The table of a noun's fields, by name. */
export type Fields = Readonly<Record<string, Field>>;

/** A field that requests can set. */
type Settable<Input extends z.ZodType> = Field & { readonly input: Input };

type Flags = Pick<Field, "sortable" | "searchable" | "byTeamAdmin">;

export const SORTABLE: Flags = { sortable: true };
export const SEARCHABLE: Flags = { searchable: true };
export const SORTABLE_AND_SEARCHABLE: Flags = { ...SORTABLE, ...SEARCHABLE };

/** A text that is always there, set by the gateway. */
export function givenText(flags: Flags = {}): Field {
  return { output: out.text, column: "text NOT NULL", ...flags };
}

/** A time that only the gateway sets. */
export function givenMoment(): Field {
  return { output: out.moment.nullable(), column: "timestamp with time zone" };
}

export function optionalText<Input extends z.ZodType>(
  input: Input,
  flags: Flags = {},
): Settable<Input> {
  return { input, output: out.text.nullable(), column: "text", ...flags };
}

export function optionalDollars<Input extends z.ZodType>(
  input: Input,
  flags: Flags = {},
): Settable<Input> {
  return { input, output: out.dollars.nullable(), column: "numeric", ...flags };
}

export function optionalCount<Input extends z.ZodType>(
  input: Input,
  column: "bigint" | "integer" = "bigint",
): Settable<Input> {
  return { input, output: out.count.nullable(), column };
}

export function optionalMoment<Input extends z.ZodType>(
  input: Input,
): Settable<Input> {
  return { ...givenMoment(), input };
}

/** A text that starts as `otherwise`, which null resets it to. */
export function choice<Input extends z.ZodType>(
  input: Input,
  otherwise: string,
  flags: Flags = {},
): Settable<Input> {
  const column = `text NOT NULL DEFAULT '${otherwise}'`;
  return { input, output: out.text, column, ...flags };
}

/** A flag that is off until it is set. */
export function flagField<Input extends z.ZodType>(
  input: Input,
): Settable<Input> {
  return {
    input,
    output: z.boolean(),
    column: "boolean NOT NULL DEFAULT false",
  };
}

/** A list that is empty until it is set. */
export function list<Input extends z.ZodType>(
  input: Input,
  flags: Flags = {},
): Settable<Input> {
  const column = "text[] NOT NULL DEFAULT '{}'";
  return { input, output: out.texts, column, ...flags };
}

/** An object that is empty until it is set; any by default. */
export function json<Input extends z.ZodType>(
  input: Input,
  output: z.ZodType = out.anything,
  flags: Flags = {},
): Settable<Input> {
  const column = "jsonb NOT NULL DEFAULT '{}'";
  return { input, output, column, ...flags };
}

/** A field that only requests have: it sets others. */
export function requestOnly<Input extends z.ZodType>(
  input: Input,
): Settable<Input> {
  return { input };
}

/** Who created and changed a row, and when. */
export const STAMPS = {
  created_at: {
    output: out.moment,
    column: "timestamp with time zone NOT NULL DEFAULT now()",
    sortable: true,
  },
  created_by: { output: out.text.nullable(), column: "text" },
  updated_at: {
    output: out.moment,
    column: "timestamp with time zone NOT NULL DEFAULT now()",
  },
  updated_by: { output: out.text.nullable(), column: "text" },
} satisfies Fields;

/** The validation of the fields that requests can set; each may be left out, or reset by null. */
export type InputOf<Table extends Fields> = {
  readonly [
    Name in keyof Table as Table[Name] extends Settable<z.ZodType>
      ? Name
      : never
  ]: z.ZodOptional<z.ZodNullable<Extract<Table[Name]["input"], z.ZodType>>>;
};

export function inputOf<Table extends Fields>(table: Table): InputOf<Table> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, { input }]) =>
      input === undefined ? [] : [[name, input.nullish()]],
    ),
  ) as InputOf<Table>;
}

/** What answers show of the fields. */
export function outputOf(table: Fields): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, { output }]) =>
      output === undefined ? [] : [[name, output]],
    ),
  );
}

/** The names of the fields that have a flag. */
export function namesOf(table: Fields, flag: keyof Flags): readonly string[] {
  return Object.keys(table).filter((name) => table[name]?.[flag] === true);
}
