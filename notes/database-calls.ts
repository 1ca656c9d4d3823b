import { Refusal, type RefusalCode } from "./refusal.ts";
import type {
  ChangesEnd,
  FromWorker,
  StoreRequest,
  ToWorker,
} from "./store/protocol.ts";

/** An answer of a database: a whole body, or chunks that arrive as they are read. */
export interface DatabaseAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Returns the end position of a changes answer. Must be read to the end or discarded, or the call's signal aborted. */
  readonly chunks:
    AsyncGenerator<Uint8Array, ChangesEnd | undefined> | undefined;
  /** Cancels unread chunks: `return()` on a generator that never started runs no clean-up. */
  readonly discard: () => void;
}

interface Call {
  readonly head: (answer: DatabaseAnswer) => void;
  readonly fail: (failure: Error) => void;
  readonly chunks: Uint8Array[];
  ended: boolean;
  end: ChangesEnd | undefined;
  failure: Error | undefined;
  wake: () => void;
  /** Removes the call. */
  done: () => void;
}

/** The calls of a database that its thread has not answered entirely. */
export class DatabaseCalls {
  readonly #send: (message: ToWorker) => void;
  readonly #calls = new Map<number, Call>();
  #last = 0;

  /** `send` passes a message to the thread. */
  constructor(send: (message: ToWorker) => void) {
    this.#send = send;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Sends a request to the thread; resolves with the head of its answer. */
  async start(
    request: StoreRequest,
    signal: AbortSignal,
  ): Promise<DatabaseAnswer> {
    signal.throwIfAborted();
    const number = ++this.#last;
    return await new Promise<DatabaseAnswer>((resolve, reject) => {
      // A write that has started is finished and its answer awaited; only streams are cut short.
      const cancel = (): void => {
        this.#send({ kind: "cancel", call: number });
        call.failure = signal.reason as Error;
        call.wake();
      };
      const call: Call = {
        head: resolve,
        fail: reject,
        chunks: [],
        ended: false,
        end: undefined,
        failure: undefined,
        wake: () => undefined,
        done: () => {
          this.#calls.delete(number);
          signal.removeEventListener("abort", cancel);
        },
      };
      this.#calls.set(number, call);
      signal.addEventListener("abort", cancel, { once: true });
      this.#send({ kind: "call", call: number, request });
    });
  }

  /** Passes a message of the thread to its call. */
  receive(message: Extract<FromWorker, { readonly call: number }>): void {
    const call = this.#calls.get(message.call);
    if (call === undefined) {
      return;
    }
    switch (message.kind) {
      case "head":
        call.head({
          status: message.status,
          headers: message.headers,
          body: message.body,
          chunks: message.streaming
            ? this.#read(message.call, call)
            : undefined,
          discard: () => this.#cancel(message.call, call),
        });
        if (!message.streaming) {
          call.done();
        }
        break;
      case "chunk":
        call.chunks.push(message.bytes);
        call.wake();
        break;
      case "end":
        call.ended = true;
        call.end = message.end;
        call.wake();
        break;
      case "refused":
        fail(call, new Refusal(message.code as RefusalCode, message.reason));
        break;
      default:
        message satisfies never;
    }
  }

  /** Ends all calls: the thread answers none of them any more. */
  fail(failure: Error): void {
    for (const call of this.#calls.values()) {
      fail(call, failure);
    }
  }

  async *#read(
    number: number,
    call: Call,
  ): AsyncGenerator<Uint8Array, ChangesEnd | undefined> {
    try {
      for (;;) {
        const chunk = call.chunks.shift();
        if (chunk !== undefined) {
          yield chunk;
          this.#send({ kind: "ack", call: number });
          continue;
        }
        if (call.failure !== undefined) {
          throw call.failure;
        }
        if (call.ended) {
          return call.end;
        }
        await new Promise<void>((resolve) => {
          call.wake = resolve;
        });
      }
    } finally {
      this.#cancel(number, call);
    }
  }

  #cancel(number: number, call: Call): void {
    if (!call.ended) {
      this.#send({ kind: "cancel", call: number });
    }
    call.done();
  }
}

function fail(call: Call, failure: Error): void {
  call.failure = failure;
  call.fail(failure);
  call.wake();
  call.done();
}
