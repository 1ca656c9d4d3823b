/** A failed attempt; stored in the row's metadata. */
export interface Attempt {
  readonly model_id: string;
  readonly status: number;
  readonly error: string;
}
