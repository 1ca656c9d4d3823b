import { LATENCY_GROWTH } from "../database/model-hours.ts";

/** How many answers took about as long; `latency` is the class of `model_hours`. */
export interface LatencyCount {
  readonly latency: number;
  readonly requests: number;
}

/** Milliseconds within which a share of the answers came, within 5 %; null without answers. */
export function percentile(
  counts: readonly LatencyCount[],
  share: number,
): number | null {
  const answered = counts
    .filter(({ latency }) => latency >= 0)
    .toSorted((one, other) => one.latency - other.latency);
  const total = answered.reduce((sum, { requests }) => sum + requests, 0);
  let left = Math.ceil(total * share);
  for (const { latency, requests } of answered) {
    left -= requests;
    if (left <= 0) {
      return Math.round(LATENCY_GROWTH ** (latency + 0.5));
    }
  }
  return null;
}
