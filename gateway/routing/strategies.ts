import { pricesCalls } from "../pricing/price-card.ts";
import { dearest } from "../pricing/prices.ts";
import type { RoutingStrategy } from "../config/types.ts";
import type { PricedDeployment } from "./catalog.ts";

/** What this instance has seen of its deployments. */
export interface Observations {
  began(deploymentId: string): void;
  /** ms until the answer (or a stream's first byte) came; null: it failed. */
  ended(deploymentId: string, latencyMs: number | null): void;
  busy(deploymentId: string): number;
  /** When it answered last, in ms since the epoch; null when it has not. */
  answeredAt(deploymentId: string): number | null;
  /** Moving average; 0 for one that was never asked, so that it is. */
  latencyMs(deploymentId: string): number;
}

const NEWEST_WEIGHT = 0.2;

export function createObservations(now: () => number = Date.now): Observations {
  const answered = new Map<string, number>();
  const busy = new Map<string, number>();
  const latencies = new Map<string, number>();
  return {
    began: (id) => void busy.set(id, (busy.get(id) ?? 0) + 1),
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

/** What decides the order of the deployments of one call. */
export interface CallSize {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * Deployments in the order in which a strategy would take them. Ties are broken at random, so that equals share the
 * load. `usage-based-routing` needs no order: the counters choose.
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
          : dearest(priceCard, size.inputTokens, size.outputTokens),
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

/** By weight: each place goes to a deployment with a chance of its weight among those left. */
function shuffle(
  deployments: readonly PricedDeployment[],
  random: () => number,
): readonly PricedDeployment[] {
  // Exponential clocks: the one that rings first is drawn with a chance in proportion to its rate.
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
