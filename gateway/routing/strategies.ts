import { pricesCalls } from "../pricing/price-card.ts";
import { mostExpensive, type Measure } from "../pricing/prices.ts";
import type { RoutingStrategy } from "../config/types.ts";
import type { PricedDeployment } from "./catalog.ts";

/** This instance's measurements of its deployments. */
export interface Observations {
  started(deploymentId: string): void;
  /** Ms until the answer (or a stream's first byte) arrived; null: it failed. */
  ended(deploymentId: string, latencyMs: number | null): void;
  busy(deploymentId: string): number;
  /** When it last answered, ms since the epoch; null: never. */
  answeredAt(deploymentId: string): number | null;
  /** Moving average; 0 for one that was never called, so that it is preferred. */
  latencyMs(deploymentId: string): number;
}

const NEWEST_WEIGHT = 0.2;

export function createObservations(now: () => number = Date.now): Observations {
  const answered = new Map<string, number>();
  const busy = new Map<string, number>();
  const latencies = new Map<string, number>();
  return {
    started: (id) => void busy.set(id, (busy.get(id) ?? 0) + 1),
    ended(id, latencyMs) {
      busy.set(id, Math.max(0, (busy.get(id) ?? 0) - 1));
      if (latencyMs === null) {
        return;
      }
      answered.set(id, now());
      const before = latencies.get(id) ?? latencyMs;
      latencies.set(id, before + NEWEST_WEIGHT * (latencyMs - before));
    },
    answeredAt: (id) => answered.get(id) ?? null,
    busy: (id) => busy.get(id) ?? 0,
    latencyMs: (id) => latencies.get(id) ?? 0,
  };
}

/** The size of a call, by which deployments are ordered. */
export interface CallSize {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly measure?: Measure | null;
}

/**
 * Deployments in the order of a strategy. Ties are broken at random, so that equals share the load.
 * `usage-based-routing` needs no order: the counters choose.
 */
export function orderBy(
  strategy: RoutingStrategy,
  deployments: readonly PricedDeployment[],
  seen: Observations,
  size: CallSize,
  random: () => number = Math.random,
): readonly PricedDeployment[] {
  if (deployments.length < 2) {
    return deployments;
  }
  const shuffled = shuffle(deployments, random);
  switch (strategy) {
    case "usage-based-routing":
    case "simple-shuffle":
      return shuffled;
    case "least-busy":
      return sortBy(shuffled, ({ id }) => seen.busy(id));
    case "latency-based-routing":
      return sortBy(shuffled, ({ id }) => seen.latencyMs(id));
    case "cost-based-routing":
      return sortBy(shuffled, ({ priceCard }) =>
        priceCard === null || !pricesCalls(priceCard)
          ? Infinity
          : mostExpensive(
              priceCard,
              size.inputTokens,
              size.outputTokens,
              0,
              [],
              size.measure,
            ),
      );
    default:
      return strategy satisfies never;
  }
}

function sortBy(
  deployments: readonly PricedDeployment[],
  measure: (deployment: PricedDeployment) => number,
): readonly PricedDeployment[] {
  return deployments.toSorted((a, b) => measure(a) - measure(b));
}

/** Weighted shuffle: each position goes to one of the remaining deployments with a probability by weight. */
function shuffle(
  deployments: readonly PricedDeployment[],
  random: () => number,
): readonly PricedDeployment[] {
  // Exponential clocks: the probability to ring first is proportional to the rate.
  const rings = new Map(
    deployments.map((deployment) => [
      deployment.id,
      deployment.weight > 0
        ? -Math.log(1 - random()) / deployment.weight
        : Infinity,
    ]),
  );
  return sortBy(deployments, ({ id }) => rings.get(id) ?? Infinity);
}
