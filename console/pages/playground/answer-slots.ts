import { Failure } from "../../../core/failure.ts";
import { sum } from "../../../core/sum.ts";

/** As many as the connections and the memory of a small supervisor allow. */
const MAX_ANSWERS = 16;
/** Two comparisons of four models. */
const MAX_OF_CALLER = 8;

class TooManyAnswers extends Failure {
  readonly statusCode = 429;
}

/** Limits how many answers are streamed at once. */
export class AnswerSlots {
  readonly #taken = new Map<string, number>();

  /** Takes slots for `count` answers of a caller; returns their release. Throws a Failure (429) that says what to wait for. */
  take(caller: string, count: number): () => void {
    const own = this.#taken.get(caller) ?? 0;
    if (own + count > MAX_OF_CALLER) {
      throw new TooManyAnswers(
        `${MAX_OF_CALLER} of your answers at once is the maximum of the playground: wait until one ends, or stop one.`,
      );
    }
    const all = sum(this.#taken.values());
    if (all + count > MAX_ANSWERS) {
      throw new TooManyAnswers(
        `${MAX_ANSWERS} answers at once is the maximum of the playground: wait until one of another user ends.`,
      );
    }
    this.#taken.set(caller, own + count);
    let released = false;
    return () => {
      if (!released) {
        released = true;
        this.#give(caller, count);
      }
    };
  }

  #give(caller: string, count: number): void {
    const rest = (this.#taken.get(caller) ?? 0) - count;
    if (rest > 0) {
      this.#taken.set(caller, rest);
    } else {
      this.#taken.delete(caller);
    }
  }
}
