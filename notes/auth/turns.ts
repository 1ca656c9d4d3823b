import { Refusal } from "../refusal.ts";

/** Maximum of waiting checks per address, and in total. */
const MAX_PER_ADDRESS = 10;
const MAX_WAITING = 64;

interface Waiting {
  readonly run: () => Promise<void>;
}

/** Runs one task at a time, round-robin by address, so that many guesses delay a login from another address by one task at most. */
export function openTurns(): <T>(
  address: string,
  work: () => Promise<T>,
) => Promise<T> {
  const queues = new Map<string, Waiting[]>();
  let waiting = 0;
  let running = false;

  const next = async (): Promise<void> => {
    if (running) {
      return;
    }
    running = true;
    for (;;) {
      const first = queues.entries().next();
      if (first.done === true) {
        break;
      }
      const [address, queue] = first.value;
      const { run } = queue.shift()!;
      // Moved to the end of the queue.
      queues.delete(address);
      if (queue.length > 0) {
        queues.set(address, queue);
      }
      waiting -= 1;
      await run();
    }
    running = false;
  };

  return async (address, work) => {
    const queue = queues.get(address) ?? [];
    if (queue.length >= MAX_PER_ADDRESS || waiting >= MAX_WAITING) {
      throw new Refusal(
        "service_unavailable",
        "Too many passwords are being checked. Try again in a few seconds.",
        { "retry-after": "5" },
      );
    }
    return await new Promise((resolve, reject) => {
      queue.push({ run: async () => await work().then(resolve, reject) });
      queues.set(address, queue);
      waiting += 1;
      void next();
    });
  };
}
