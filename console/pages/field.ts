/** Names of the fields whose values are never shown again. */
export const SECRET_FIELDS = ["api_key", "value", "vaultPassphrase"] as const;

/** One field of a form, as templates/field.eta shows it: label above, note and mistake below. */
export type Field = {
  readonly name: string;
  readonly label: string;
  readonly note?: string;
  readonly needed?: boolean;
  /** The problem with the typed value. */
  readonly mistake?: string | undefined;
  /** The current value; "true" checks a checkbox. Never shown again in a secret. */
  readonly value?: string | undefined;
} & (
  | { readonly kind: "lines" | "day" | "tick" }
  | {
      readonly kind: "secret";
      readonly name: (typeof SECRET_FIELDS)[number];
    }
  | {
      readonly kind: "text";
      /** Suggested values; others may be typed. */
      readonly among?: readonly string[];
    }
  | {
      readonly kind: "choice";
      /** Pairs of value and label. */
      readonly values: readonly (readonly [string, string])[];
    }
);

/** The fields with typed values and mistakes. */
export function withTyped<Shown extends Field>(
  fields: readonly Shown[],
  typed: Readonly<Record<string, string | readonly string[]>>,
  mistakes: Readonly<Record<string, string>>,
): readonly Shown[] {
  return fields.map((field) => ({
    ...field,
    value: [typed[field.name] ?? ""].flat().at(-1),
    mistake: mistakes[field.name],
  }));
}
