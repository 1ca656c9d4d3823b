/** A failed attempt; stored in the row's metadata. */
export interface Attempt {
  readonly model_id: string;
  readonly status: number;
  readonly error: string;
}

/** The status of an attempt that was cancelled because another one answered first. */
export const OUTRUN = 499;
