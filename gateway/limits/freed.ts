/** Calls that wait for money of an entity, those that wait longest first. */
export interface FreedWaits {
  /** Until a call of this entity has settled here, or the time is over. */
  wait(entity: string, ms: number): Promise<void>;
  /** A settle may have freed money of these entities. */
  freed(entities: Iterable<string>): void;
}

/** A settle frees room for few: waking all of a crowd would only send it all to be refused again. */
const WOKEN_AT_ONCE = 8;

export function createFreedWaits(): FreedWaits {
  const waiting = new Map<string, Set<() => void>>();
  return {
    wait: (entity, ms) =>
      new Promise((resolve) => {
        const crowd = waiting.get(entity) ?? new Set();
        waiting.set(entity, crowd);
        const end = () => {
          clearTimeout(timer);
          crowd.delete(end);
          if (crowd.size === 0 && waiting.get(entity) === crowd) {
            waiting.delete(entity);
          }
          resolve();
        };
        const timer = setTimeout(end, ms);
        crowd.add(end);
      }),
    freed(entities) {
      if (waiting.size === 0) {
        return;
      }
      for (const entity of entities) {
        let woken = 0;
        for (const wake of waiting.get(entity) ?? []) {
          wake();
          if (++woken === WOKEN_AT_ONCE) {
            break;
          }
        }
      }
    },
  };
}
