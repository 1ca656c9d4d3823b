interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Redis serves no other client during a script. */
const MAX_AT_ONCE = 100;

/**
 * Sends items in batches: the items of one turn of the event loop, and those that arrive while a batch is being sent. `send` returns an answer for each item,
 * in order; `atEndOfTurn` decides when the first batch is sent.
 */
export class Batcher<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #atEndOfTurn: (work: () => void) => void;
  #waiting: Waiting<Item, Answer>[] = [];
  #sending = false;

  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    atEndOfTurn: (work: () => void) => void,
  ) {
    this.#send = send;
    this.#atEndOfTurn = atEndOfTurn;
  }

  /** Resolves with the item's answer; rejects when its batch could not be sent. */
  send(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#sending) {
        return;
      }
      this.#sending = true;
      this.#atEndOfTurn(() => void this.#sendAll());
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_AT_ONCE);
      this.#waiting = this.#waiting.slice(MAX_AT_ONCE);
      try {
        const answers = await this.#send(batch.map(({ item }) => item));
        for (const [i, { resolve }] of batch.entries()) {
          resolve(answers[i] as Answer);
        }
      } catch (error) {
        for (const { reject } of batch) {
          reject(error);
        }
      }
    }
    this.#sending = false;
  }
}
