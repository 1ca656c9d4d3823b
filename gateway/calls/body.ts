/** A validated body; the provider gets it without Hearth's own fields. */
export interface CallBody extends Readonly<Record<string, unknown>> {
  readonly model: string;
}
