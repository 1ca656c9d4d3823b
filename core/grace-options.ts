/** How a rotation ends the old secret, as typed. */
interface GraceOptions {
  /** A duration, such as `24h`. */
  readonly grace?: string | undefined;
  readonly end?: boolean | undefined;
}

export const INVALID_GRACE =
  "--grace must be a duration such as 30m, 24h or 7d.";

/**
 * What is wrong with these options for a secret; null: nothing. Only the old master key has a grace period: without the error,
 * `rotate postgres --end` would rotate the passwords again.
 */
export function faultOfGrace(
  secret: string,
  { grace, end = false }: GraceOptions,
): string | null {
  if (secret !== "master" && (end || grace !== undefined)) {
    return `${end ? "--end" : "--grace"} is for master: only its old key stays valid after a rotation. Leave the option out.`;
  }
  return end && grace !== undefined
    ? "--end ends the old key now, --grace keeps it: use one of them."
    : null;
}
