import type { RequestedUsage } from "../providers/openai.ts";
import { ssePieceText, type StreamPiece } from "../providers/wire.ts";
import { timeIn, type CallClock } from "./call-clock.ts";
import { EarlyUsage } from "./early-usage.ts";

/** A longer stream is passed on but not cached. */
const MAX_CACHED_CHARACTERS = 4 * 1024 * 1024;

/** What some pieces of a stream give. */
interface TakenText {
  /** Goes to the client now. */
  readonly text: string;
  readonly done: boolean;
  readonly failed: boolean;
}

/** The text of a stream on its way to the client, also kept for the cache. */
export class StreamText {
  readonly #clock: CallClock;
  readonly #usage: RequestedUsage;
  readonly #earlyUsage = new EarlyUsage();
  #firstTokenAt: number | null = null;
  /** null once it is too long for the cache. */
  #kept: string[] | null = [];
  #characters = 0;
  #ending = "";

  constructor(clock: CallClock, usage: RequestedUsage) {
    this.#clock = clock;
    this.#usage = usage;
  }

  /** Ms since the epoch. */
  get firstTokenAt(): number | null {
    return this.#firstTokenAt;
  }

  get fitsCache(): boolean {
    return this.#kept !== null;
  }

  /** The last events, held back until the call is recorded. */
  get ending(): string {
    return this.#ending;
  }

  /** The complete text; null: too long for the cache. */
  whole(): string | null {
    return this.#kept === null ? null : this.#kept.join("") + this.#ending;
  }

  take(pieces: readonly StreamPiece[]): TakenText {
    let text = "";
    let done = false;
    let failed = false;
    for (const piece of pieces) {
      if (piece.kind === "usage_only" && this.#usage === "none") {
        continue;
      }
      failed ||= piece.kind === "error";
      if (piece.kind === "done" && this.#usage === "once") {
        this.#ending += this.#earlyUsage.rest();
      }
      done ||= piece.kind === "done";
      if (done) {
        this.#ending += ssePieceText(piece);
      } else {
        text +=
          this.#usage === "every chunk"
            ? ssePieceText(piece)
            : this.#earlyUsage.textOf(piece);
      }
    }
    if (text !== "") {
      this.#keep(text);
    }
    return { done, failed, text };
  }

  #keep(text: string): void {
    this.#firstTokenAt ??= timeIn(this.#clock);
    this.#characters += text.length;
    if (this.#characters > MAX_CACHED_CHARACTERS) {
      this.#kept = null;
    }
    this.#kept?.push(text);
  }
}
