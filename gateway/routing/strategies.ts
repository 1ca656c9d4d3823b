import { hash } from "node:crypto";
import { isWithin } from "../../core/clock-jumps.ts";
import { MINUTE_MS } from "../../core/duration.ts";
import { pricesCalls } from "../pricing/price-card.ts";
import { mostExpensive } from "../pricing/cost.ts";
import type { Measure } from "../pricing/measure.ts";
import type { RoutingStrategy } from "../config/types.ts";
import type { PricedDeployment } from "./catalog.ts";

/** This instance's measurements of its deployments. */
export interface Observations {
  started(deploymentId: string): void;
  /** Ms until the answer (or a stream's first content) arrived. */
  answered(deploymentId: string, latencyMs: number): void;
  /** An attempt has failed by the deployment's fault; `late`: it did not answer in time. */
  failed(deploymentId: string, late: boolean): void;
  /** An attempt has failed, or the whole answer has arrived. */
  ended(deploymentId: string): void;
  busy(deploymentId: string): number;
  /** When it last answered, ms since the epoch; null: never. */
  answeredAt(deploymentId: string): number | null;
  /**
   * Moving average; 0 for one that was never called, so that it is preferred. Infinity for a minute after an attempt that was too
   * late, or failed where none had been answered before.
   */
  latencyMs(deploymentId: string): number;
  /** Its server has no `/responses`, but chat. */
  missedResponses(deploymentId: string): void;
  /** Forgotten after some minutes: the server may have been updated. */
  lacksResponses(deploymentId: string): boolean;
}

const UINT32 = 2 ** 32;
const NEWEST_WEIGHT = 0.2;
const MISSED_FOR_MS = 600_000;
const SLOW_FOR_MS = MINUTE_MS;

export function createObservations(now: () => number = Date.now): Observations {
  const answered = new Map<string, number>();
  const busy = new Map<string, number>();
  const latencies = new Map<string, number>();
  const missed = new Map<string, number>();
  const slow = new Map<string, number>();
  const isRecent = (at: number | undefined, spanMs: number) =>
    at !== undefined && isWithin(at, spanMs, now());
  return {
    started: (id) => void busy.set(id, (busy.get(id) ?? 0) + 1),
    answered(id, latencyMs) {
      answered.set(id, now());
      slow.delete(id);
      const before = latencies.get(id) ?? latencyMs;
      latencies.set(id, before + NEWEST_WEIGHT * (latencyMs - before));
    },
    failed(id, late) {
      if (late || !latencies.has(id)) {
        slow.set(id, now());
      }
    },
    ended: (id) => void busy.set(id, Math.max(0, (busy.get(id) ?? 0) - 1)),
    answeredAt: (id) => answered.get(id) ?? null,
    busy: (id) => busy.get(id) ?? 0,
    latencyMs: (id) =>
      isRecent(slow.get(id), SLOW_FOR_MS) ? Infinity : (latencies.get(id) ?? 0),
    missedResponses: (id) => void missed.set(id, now()),
    lacksResponses: (id) => isRecent(missed.get(id), MISSED_FOR_MS),
  };
}

/** What the calls of one session have in common. */
export interface Session {
  readonly key: string;
  /** The client named it; else it was found by the start of the conversation. */
  readonly isNamed: boolean;
}

/** The size of a call, by which deployments are ordered. */
export interface CallSize {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly measure?: Measure | null;
}

/**
 * Deployments in the order of a strategy. Ties are broken at random, so that equals share the load; for a session always in the
 * same way, and one that the client named stays where it is however busy or slow. `usage-based-routing` needs no order without a
 * session: the counters choose.
 */
export function orderBy(
  strategy: RoutingStrategy,
  deployments: readonly PricedDeployment[],
  seen: Observations,
  size: CallSize,
  session: Session | null,
  random: () => number = Math.random,
): readonly PricedDeployment[] {
  if (deployments.length < 2) {
    return deployments;
  }
  const shuffled = shuffle(
    deployments,
    session === null ? random : (id) => drawOf(session, id),
  );
  const stays = session?.isNamed === true;
  switch (strategy) {
    case "usage-based-routing":
    case "simple-shuffle":
      return shuffled;
    case "least-busy":
      return stays ? shuffled : sortBy(shuffled, ({ id }) => seen.busy(id));
    case "latency-based-routing":
      return stays
        ? shuffled
        : sortBy(shuffled, ({ id }) => seen.latencyMs(id));
    case "cost-based-routing":
      return sortBy(shuffled, ({ priceCard }) =>
        priceCard === null || !pricesCalls(priceCard)
          ? Infinity
          : mostExpensive(priceCard, size),
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
  draw: (deploymentId: string) => number,
): readonly PricedDeployment[] {
  // Exponential clocks: the probability to ring first is proportional to the rate.
  const rings = new Map(
    deployments.map((deployment) => [
      deployment.id,
      deployment.weight > 0
        ? -Math.log(1 - draw(deployment.id)) / deployment.weight
        : Infinity,
    ]),
  );
  return sortBy(deployments, ({ id }) => rings.get(id) ?? Infinity);
}

/**
 * A number from 0 (inclusive) to 1, always the same for a session and a deployment: all gateways put the deployments in the same
 * order without a shared memory of sessions, and a deployment that is left out moves only its own sessions ("rendezvous hashing").
 */
function drawOf({ key }: Session, deploymentId: string): number {
  const digest = hash("sha1", `${key}\0${deploymentId}`, "buffer");
  return digest.readUInt32BE(0) / UINT32;
}
