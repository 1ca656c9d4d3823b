import { z } from "zod";
import { out } from "./out.ts";

/**
 * One field of a noun: what requests set, what answers show, and how Postgres stores it. A new field is one row in the
 * table of its noun and a migration that adds its column; `kinds.server.test.ts` compares the two.
 */
interface Field {
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
const SEARCHABLE: Flags = { searchable: true };
export const SORTABLE_AND_SEARCHABLE: Flags = { ...SORTABLE, ...SEARCHABLE };

/** What answers show of the types of fields, and their columns. Lists and objects are empty until they are set. */
const TYPES = {
  id: { output: out.text, column: "text NOT NULL" },
  text: { output: out.text.nullable(), column: "text" },
  dollars: { output: out.dollars.nullable(), column: "numeric" },
  count: { output: out.count.nullable(), column: "bigint" },
  smallCount: { output: out.count.nullable(), column: "integer" },
  moment: {
    output: out.moment.nullable(),
    column: "timestamp with time zone",
  },
  stamp: {
    output: out.moment,
    column: "timestamp with time zone NOT NULL DEFAULT now()",
  },
  flag: { output: z.boolean(), column: "boolean NOT NULL DEFAULT false" },
  list: { output: out.texts, column: "text[] NOT NULL DEFAULT '{}'" },
  json: { output: out.anything, column: "jsonb NOT NULL DEFAULT '{}'" },
} satisfies Readonly<Record<string, Field>>;

type Type = keyof typeof TYPES;

/** A field that only the gateway sets. */
export function readOnly(type: Type, more: Field = {}): Field {
  return { ...TYPES[type], ...more };
}

/** A field that requests can set, with the validation of its values. */
export function settable<Input extends z.ZodType>(
  type: Type,
  input: Input,
  more: Field = {},
): Settable<Input> {
  return { ...TYPES[type], ...more, input };
}

/** A text that starts as `initial`, to which null resets it. */
export function textWithDefault(initial: string): Field {
  return { output: out.text, column: `text NOT NULL DEFAULT '${initial}'` };
}

/** Who created and changed a row, and when. */
export const STAMPS = {
  created_at: readOnly("stamp", SORTABLE),
  created_by: readOnly("text"),
  updated_at: readOnly("stamp"),
  updated_by: readOnly("text"),
} satisfies Fields;

/** The validation of the fields that requests can set; each may be left out, or reset by null. */
type InputOf<Table extends Fields> = {
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
