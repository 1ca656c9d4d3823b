/** A settlement makes room for few calls: of all waiting calls, most would be rejected again. */
const WOKEN_AT_ONCE = 8;

/** Calls that wait for the budget of an entity, longest wait first. */
export class ReleaseWaits {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Until a call of this entity has settled here, or the time is over. */
  wait(entity: string, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const crowd = this.#waiting.get(entity) ?? new Set();
      this.#waiting.set(entity, crowd);
      const end = () => {
        clearTimeout(timer);
        crowd.delete(end);
        if (crowd.size === 0 && this.#waiting.get(entity) === crowd) {
          this.#waiting.delete(entity);
        }
        resolve();
      };
      const timer = setTimeout(end, ms);
      crowd.add(end);
    });
  }

  /** A settlement may have released budget of these entities. */
  released(entities: Iterable<string>): void {
    if (this.#waiting.size === 0) {
      return;
    }
    for (const entity of entities) {
      let woken = 0;
      for (const wake of this.#waiting.get(entity) ?? []) {
        wake();
        if (++woken === WOKEN_AT_ONCE) {
          break;
        }
      }
    }
  }
}
