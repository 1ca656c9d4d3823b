/** A failed attempt; stored in the row's metadata. */
export interface Attempt {
  readonly model_id: string;
  readonly status: number;
  readonly error: string;
  /** How long it took; missing where another attempt ran at the same time. */
  readonly ms?: number;
  /** When the cooldown of the deployment ends that this failure started, or met; ms since the epoch. */
  readonly cooling_until?: number;
}

/** The status of an attempt that was cancelled: another one has answered first, or no client waits for its answer. */
export const CANCELLED = 499;
