import { RENEW_EVERY_MS, type LimitStore } from "../limits/limits.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Slot } from "../runners/slot-queue.ts";

type Progress = "admitted" | "journaled" | "recorded" | "settled";

/** Calls that hold limits now, and how far each is recorded. Renews the leases of long calls in one batch. */
export class ActiveCalls {
  readonly #progress = new Map<string, Progress>();
  readonly #answering = new Map<string, PricedDeployment>();
  readonly #estimatedCosts = new Map<string, number>();
  readonly #passedOver = new Map<string, readonly string[]>();
  readonly #aborts = new Map<string, () => void>();
  /** Slots of local runners. */
  readonly #slots = new Map<string, readonly Slot[]>();
  readonly #timer: NodeJS.Timeout;
  #aborted = false;

  constructor(limits: LimitStore) {
    this.#timer = setInterval(() => {
      if (this.#progress.size > 0) {
        limits.renew([...this.#progress.keys()]).catch(() => undefined);
      }
    }, RENEW_EVERY_MS);
  }

  count(): number {
    return this.#progress.size;
  }

  admitted(callId: string): void {
    this.#progress.set(callId, "admitted");
  }

  journaled(callId: string): void {
    this.#progress.set(callId, "journaled");
  }

  /** A deployment has started to answer the call, and may charge for it. */
  answered(callId: string, by: PricedDeployment): void {
    this.#answering.set(callId, by);
  }

  /** An attempt failed that its provider may nevertheless charge for; dollars. */
  failedAtCost(callId: string, cost: number): void {
    this.setEstimatedCost(callId, this.estimatedCost(callId) + cost);
  }

  /** The total cost of such attempts, where one of them is not counted after all. */
  setEstimatedCost(callId: string, cost: number): void {
    this.#estimatedCosts.set(callId, cost);
  }

  /** The total cost of such attempts of a call. */
  estimatedCost(callId: string): number {
    return this.#estimatedCosts.get(callId) ?? 0;
  }

  /** These deployments of the call's model were cooling down when its first one was chosen. */
  passedOver(callId: string, deploymentIds: readonly string[]): void {
    this.#passedOver.set(callId, deploymentIds);
  }

  deploymentsPassedOver(callId: string): readonly string[] {
    return this.#passedOver.get(callId) ?? [];
  }

  /** The outcome of the call is in the journal. */
  recorded(callId: string): void {
    this.#progress.set(callId, "recorded");
  }

  /** What the call reserved is released. */
  settled(callId: string): void {
    this.#progress.set(callId, "settled");
  }

  /** The call has a slot, which is free again at its end, if not before. */
  holds(callId: string, slot: Slot): void {
    this.#slots.set(callId, [...(this.#slots.get(callId) ?? []), slot]);
  }

  ended(callId: string): void {
    if (this.#slots.size > 0) {
      this.#slots.get(callId)?.forEach((slot) => slot.release());
      this.#slots.delete(callId);
    }
    this.#progress.delete(callId);
    this.#answering.delete(callId);
    this.#estimatedCosts.delete(callId);
    this.#passedOver.delete(callId);
    this.#aborts.delete(callId);
  }

  /** Whether its limits are released, or on their way. */
  isSettled(callId: string): boolean {
    return (this.#progress.get(callId) ?? "settled") === "settled";
  }

  hasOpenIntent(callId: string): boolean {
    return this.#progress.get(callId) === "journaled";
  }

  /** The deployment that has started to answer; null: none has. */
  answeredBy(callId: string): PricedDeployment | null {
    return this.#answering.get(callId) ?? null;
  }

  /** Registers how to end a call when the gateway can no longer wait for it. */
  endsBy(callId: string, abort: () => void): void {
    this.#aborts.set(callId, abort);
    if (this.#aborted) {
      abort();
    }
  }

  /** Ends all calls, including those that are about to call a provider. */
  abortAll(): void {
    this.#aborted = true;
    for (const abort of this.#aborts.values()) {
      abort();
    }
  }

  aborted(): boolean {
    return this.#aborted;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
