import type { Redis } from "ioredis";
import { waitFor } from "../../../test/wait-for.ts";
import type { Admission, Limits } from "../limits.ts";

/** Waits until each store is connected to Redis ("redis"), or has noticed that it is not ("redis_away"). */
export function waitForMode(
  mode: ReturnType<Limits["mode"]>,
  ...stores: readonly Limits[]
): Promise<boolean> {
  return waitFor(`mode ${mode}`, () =>
    stores.every((store) => store.mode() === mode),
  );
}

/** Waits until each store has arrived at Redis so often. */
export function waitForArrivals(
  times: number,
  ...stores: readonly Limits[]
): Promise<boolean> {
  return waitFor(`${times} arrivals at Redis`, () =>
    stores.every((store) => store.counts().arrivals >= times),
  );
}

/** Waits until each store knows that so many instances share the limits. */
export function waitForInstances(
  instances: number,
  ...stores: readonly Limits[]
): Promise<boolean> {
  return waitFor(`${instances} instances`, () =>
    stores.every((store) => store.counts().instances === instances),
  );
}

/** Waits until so many instances have beaten in Redis. */
export function waitForBeats(
  instances: number,
  redis: Redis | undefined,
  prefix: string,
): Promise<boolean> {
  return waitFor(
    `beats of ${instances} instances`,
    async () => (await redis?.zcard(`${prefix}beats`)) === instances,
  );
}

/** The answer once it is not `budget_held`, as it is while the shares of small budgets are unknown. */
export function waitForShares(
  admit: () => Promise<Admission>,
): Promise<Admission> {
  return waitFor("the shares of small budgets", async () => {
    const admission = await admit();
    return admission.kind !== "budget_held" && admission;
  });
}
