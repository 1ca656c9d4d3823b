import type { Settlement } from "../limits.ts";

/** Settlements on their way to Redis. */
export interface Settlements {
  /** Resolves once Redis has it, with whether it has. */
  send(call: Settlement): Promise<boolean>;
}

interface Waiting {
  readonly call: Settlement;
  readonly resolve: (arrived: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** Redis serves nobody else meanwhile. */
const MOST_AT_ONCE = 100;

/**
 * One is sent at once; those that come while it is on its way go together when its answer is there. `send` answers
 * whether they arrived.
 */
export function createSettlements(
  send: (calls: readonly Settlement[]) => Promise<boolean>,
): Settlements {
  let waiting: Waiting[] = [];
  let sending = false;

  async function sendAll(): Promise<void> {
    sending = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MOST_AT_ONCE);
      waiting = waiting.slice(MOST_AT_ONCE);
      try {
        const arrived = await send(batch.map(({ call }) => call));
        for (const { resolve } of batch) resolve(arrived);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    sending = false;
  }

  return {
    send: (call) =>
      new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject });
        if (!sending) void sendAll();
      }),
  };
}
