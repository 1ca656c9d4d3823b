/** A body that was validated; the provider gets it without the fields that are ours. */
export interface CallBody extends Readonly<Record<string, unknown>> {
  readonly model: string;
}
