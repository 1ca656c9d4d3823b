import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { ConnectionMemory } from "./response-context.ts";
import type { OpenedResponse } from "./open-response.ts";

/** Names the call in the request that carries it out. */
const HEADER = "x-hearth-inner-call";

/** By unguessable name: no client can take a call over. */
const calls = new Map<string, InnerCall>();

/** A call of the Responses API that this process sends to itself: its answer has no connection of its own. */
export abstract class InnerCall {
  /** Opened before it was sent; null: it is opened as the call of a client. */
  opened: OpenedResponse | null = null;
  /** Responses of its connection that are not stored; null: only stored ones can be continued. */
  abstract readonly memory: ConnectionMemory | null;
  readonly #name = randomUUID();
  #sink: ServerResponse | null = null;
  #isCancelled = false;

  constructor() {
    calls.set(this.#name, this);
  }

  /** Of the request that carries it out. */
  get headers(): Readonly<Record<string, string>> {
    return { [HEADER]: this.#name };
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** Where its answer goes. */
  answersTo(sink: ServerResponse): void {
    this.#sink = sink;
    if (this.#isCancelled) {
      sink.destroy();
    }
  }

  /** Stops its provider, like a client that leaves. */
  cancel(): void {
    this.#isCancelled = true;
    this.#sink?.destroy();
  }

  ended(): void {
    calls.delete(this.#name);
  }
}

/** The call that a request of this process carries out; null: the request is a client's. */
export function innerCallOf(headers: IncomingHttpHeaders): InnerCall | null {
  const name = headers[HEADER];
  return typeof name === "string" ? (calls.get(name) ?? null) : null;
}
