/** SQL: whether a row with `expires_at` is still there for its readers. */
export const UNEXPIRED = "(expires_at IS NULL OR expires_at > now())";

/** A time as a statement takes it; null: never. */
export function timeOf(ms: number): string;
export function timeOf(ms: number | null): string | null;
export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
