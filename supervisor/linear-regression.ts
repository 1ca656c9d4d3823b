export interface Point {
  readonly at: number;
  readonly value: number;
}

/**
 * The slope of a linear regression, per millisecond; undefined if R² is below one half.
 */
export function slopeOf(points: readonly Point[]): number | undefined {
  const count = points.length;
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / count;
  const mean = points.reduce((sum, { value }) => sum + value, 0) / count;
  let spread = 0;
  let together = 0;
  let variance = 0;
  for (const { at, value } of points) {
    spread += (at - meanAt) ** 2;
    together += (at - meanAt) * (value - mean);
    variance += (value - mean) ** 2;
  }
  if (variance === 0 || spread === 0) {
    return undefined;
  }
  const explained = together ** 2 / (spread * variance);
  return explained < 0.5 ? undefined : together / spread;
}
