/** One field of a form, as templates/field.eta draws it: label above, what is known or wrong below. */
export type Field = {
  readonly name: string;
  readonly label: string;
  readonly note?: string;
  readonly needed?: boolean;
  /** What is wrong with what was typed. */
  readonly mistake?: string | undefined;
  /** What stands in it; "true" is a tick. Never shown again in a secret. */
  readonly value?: string | undefined;
} & (
  | { readonly kind: "lines" | "day" | "tick" | "secret" }
  | {
      readonly kind: "text";
      /** What is proposed; other words may be typed. */
      readonly among?: readonly string[];
    }
  | {
      readonly kind: "choice";
      /** What is sent, and what is read. */
      readonly values: readonly (readonly [string, string])[];
    }
);

/** The fields with what was typed into them, and what is wrong with it. */
export function withTyped(
  fields: readonly Field[],
  typed: Readonly<Record<string, string | readonly string[]>>,
  mistakes: Readonly<Record<string, string>>,
): readonly Field[] {
  return fields.map((field) => ({
    ...field,
    value: [typed[field.name] ?? ""].flat().at(-1),
    mistake: mistakes[field.name],
  }));
}
