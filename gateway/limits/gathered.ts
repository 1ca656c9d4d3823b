/** Items that are sent together. */
export interface Gathered<Item, Answer> {
  /** Resolves with the item's answer; rejects when its batch could not be sent. */
  send(item: Item): Promise<Answer>;
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Redis serves nobody else meanwhile. */
const MOST_AT_ONCE = 100;

/**
 * What comes in one turn of the event loop, and while a batch is on its way, goes together. `send` answers for each item,
 * in their order; `atEndOfTurn` is when the first of a batch goes.
 */
export function createGathered<Item, Answer>(
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
  atEndOfTurn: (work: () => void) => void,
): Gathered<Item, Answer> {
  let waiting: Waiting<Item, Answer>[] = [];
  let sending = false;

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MOST_AT_ONCE);
      waiting = waiting.slice(MOST_AT_ONCE);
      try {
        const answers = await send(batch.map(({ item }) => item));
        for (const [i, { resolve }] of batch.entries()) {
          resolve(answers[i] as Answer);
        }
      } catch (error) {
        for (const { reject } of batch) {
          reject(error);
        }
      }
    }
    sending = false;
  }

  return {
    send: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        if (sending) {
          return;
        }
        sending = true;
        atEndOfTurn(() => void sendAll());
      }),
  };
}
