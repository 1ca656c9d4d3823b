import type { Nanos } from "../pricing/money.ts";

interface PendingSum {
  readonly entity: string;
  readonly window: string;
  readonly pending: Nanos;
}

/** Spend of this instance that is settled but not yet in the ledger, one sum for each entity and window. */
export interface PendingSums {
  add(
    charged: Readonly<Record<string, string>>,
    spend: Nanos,
  ): readonly PendingSum[];
  /** Subtracts what a commit wrote to the ledger. */
  subtract(charged: Readonly<Record<string, string>>, spend: Nanos): void;
  of(entity: string, window: string): Nanos;
  all(): readonly PendingSum[];
}

export function createPendingSums(): PendingSums {
  const sums = new Map<string, Map<string, Nanos>>();

  function change(entity: string, window: string, by: Nanos): Nanos {
    const windows = sums.get(entity) ?? new Map<string, Nanos>();
    const sum = (windows.get(window) ?? 0) + by;
    if (sum === 0) {
      windows.delete(window);
    } else {
      windows.set(window, sum);
    }
    if (windows.size === 0) {
      sums.delete(entity);
    } else {
      sums.set(entity, windows);
    }
    return sum;
  }

  return {
    add: (charged, spend) =>
      Object.entries(charged).map(([entity, window]) => ({
        entity,
        window,
        pending: change(entity, window, spend),
      })),
    subtract(charged, spend) {
      for (const [entity, window] of Object.entries(charged)) {
        change(entity, window, -spend);
      }
    },
    of: (entity, window) => sums.get(entity)?.get(window) ?? 0,
    all: () =>
      [...sums].flatMap(([entity, windows]) =>
        [...windows].map(([window, pending]) => ({ entity, window, pending })),
      ),
  };
}
