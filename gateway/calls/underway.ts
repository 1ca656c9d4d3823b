import { RENEW_EVERY_MS, type LimitStore } from "../limits/limits.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/** Calls that hold limits now, and how far their record has come. */
export interface CallsUnderWay {
  readonly count: () => number;
  admitted(callId: string): void;
  journaled(callId: string): void;
  /** A deployment has begun to answer it, and may charge for it. */
  answered(callId: string, by: PricedDeployment): void;
  /** An attempt failed that its provider may charge for all the same; dollars. */
  failedAtCost(callId: string, cost: number): void;
  /** What such attempts of a call cost together. */
  estimatedCost(callId: string): number;
  /** Its outcome is in the journal. */
  recorded(callId: string): void;
  ended(callId: string): void;
  hasOpenIntent(callId: string): boolean;
  /** The deployment that has begun to answer; null: none has. */
  answeredBy(callId: string): PricedDeployment | null;
  /** How a call is ended when the gateway cannot wait for it any longer. */
  endsBy(callId: string, abort: () => void): void;
  /** Ends all calls, also those that are about to call a provider. */
  abortAll(): void;
  readonly aborted: () => boolean;
  stop(): void;
}

/** Renews the leases of long calls in one batch. */
export function createCallsUnderWay(limits: LimitStore): CallsUnderWay {
  const calls = new Map<string, "admitted" | "journaled" | "recorded">();
  const answering = new Map<string, PricedDeployment>();
  const estimated = new Map<string, number>();
  const aborts = new Map<string, () => void>();
  let aborted = false;
  const timer = setInterval(() => {
    if (calls.size > 0) {
      limits.renew([...calls.keys()]).catch(() => undefined);
    }
  }, RENEW_EVERY_MS);
  return {
    count: () => calls.size,
    admitted: (callId) => void calls.set(callId, "admitted"),
    journaled: (callId) => void calls.set(callId, "journaled"),
    answered: (callId, by) => void answering.set(callId, by),
    failedAtCost: (callId, cost) =>
      void estimated.set(callId, (estimated.get(callId) ?? 0) + cost),
    estimatedCost: (callId) => estimated.get(callId) ?? 0,
    recorded: (callId) => void calls.set(callId, "recorded"),
    ended(callId) {
      calls.delete(callId);
      answering.delete(callId);
      estimated.delete(callId);
      aborts.delete(callId);
    },
    endsBy(callId, abort) {
      aborts.set(callId, abort);
      if (aborted) {
        abort();
      }
    },
    aborted: () => aborted,
    abortAll() {
      aborted = true;
      for (const abort of aborts.values()) {
        abort();
      }
    },
    hasOpenIntent: (callId) => calls.get(callId) === "journaled",
    answeredBy: (callId) => answering.get(callId) ?? null,
    stop: () => clearInterval(timer),
  };
}
