import type { PricedDeployment } from "../routing/catalog.ts";
import { slotServerOf } from "./address.ts";
import type { SlotLeases } from "./slot-leases.ts";
import { SlotQueue } from "./slot-queue.ts";

interface SlotsOptions {
  /** Slots that the deployment's runner reports; null: it reports none. */
  readonly reported: (deployment: PricedDeployment) => number | null;
  readonly leases: SlotLeases | null;
}

/** The queues of models at runners with `slots`. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #queues = new Map<string, SlotQueue>();

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** The queue of a deployment, shared with those of the same model at the same address; null: it has no slots. */
  of(deployment: PricedDeployment): SlotQueue | null {
    const slots = deployment.runner?.slots ?? null;
    if (slots === null) {
      return null;
    }
    const { reported, leases } = this.#options;
    const own = reported(deployment);
    // A runner that reports slots has one model, whatever name is called.
    const model = slots === "auto" && own !== null ? "" : deployment.model;
    const key = `${slotServerOf(deployment)}\0${model}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new SlotQueue(key, leases);
      this.#queues.set(key, queue);
    }
    const limit = slots === "auto" ? (own ?? Infinity) : slots;
    if (queue.limit !== limit) {
      queue.limit = limit;
    }
    return queue;
  }

  /**
   * Of deployments those with a free slot, or without slots; if there are none, those with the shortest line that is not
   * full.
   */
  select(
    deployments: readonly PricedDeployment[],
  ): readonly PricedDeployment[] {
    if (deployments.every(({ runner }) => runner === null)) {
      return deployments;
    }
    const free = deployments.filter(
      (deployment) => this.of(deployment)?.hasFree ?? true,
    );
    if (free.length > 0) {
      return free;
    }
    const lines = deployments.map((deployment) => ({
      deployment,
      waiting: this.of(deployment)?.waiting ?? 0,
    }));
    const open = lines.filter(
      ({ deployment: { runner }, waiting }) =>
        waiting < (runner?.queueLimit ?? 0),
    );
    const shortest = Math.min(...open.map(({ waiting }) => waiting));
    return open
      .filter(({ waiting }) => waiting === shortest)
      .map(({ deployment }) => deployment);
  }

  /** Calls that wait, by alias; a queue that several share counts for the first. */
  waiting(
    deployments: readonly PricedDeployment[],
  ): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    const counted = new Set<SlotQueue>();
    for (const deployment of deployments) {
      const queue = this.of(deployment);
      if (queue !== null && !counted.has(queue)) {
        counted.add(queue);
        const { alias } = deployment;
        sums.set(alias, (sums.get(alias) ?? 0) + queue.waiting);
      }
    }
    return sums;
  }

  /** Until one of the deployments is expected to have a free slot. */
  expectedWaitMs(deployments: readonly PricedDeployment[]): number {
    const waits = deployments.flatMap(
      (deployment) => this.of(deployment)?.expectedWaitMs ?? [],
    );
    return waits.length === 0 ? 0 : Math.min(...waits);
  }
}
