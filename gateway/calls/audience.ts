import type { FastifyReply } from "fastify";
import type { Flights } from "../cache/flights.ts";
import type { Call } from "./call.ts";
import { onceAllLeft } from "./once-all-left.ts";
import type { StreamTranslation } from "./translation.ts";

/** How long the provider's usage is awaited after the client has left at the announced end. */
const USAGE_GRACE_MS = 5_000;

/**
 * The client of a stream and the identical calls that wait for the same answer. While any of them remains, the provider
 * continues; after that it is stopped, at the announced end only once its usage has had time to arrive.
 */
export class Audience {
  readonly #flights: Flights;
  readonly #call: Pick<Call, "id" | "cacheKey">;
  readonly #client: FastifyReply["raw"];
  readonly #stream: StreamTranslation;
  readonly #abort: () => void;
  #left = false;
  #stopped = false;
  #isOver = false;
  #unwatch: (() => void) | undefined;
  #grace: NodeJS.Timeout | undefined;

  /** `abort` stops the provider. */
  constructor(
    flights: Flights,
    call: Pick<Call, "id" | "cacheKey">,
    client: FastifyReply["raw"],
    stream: StreamTranslation,
    abort: () => void,
  ) {
    this.#flights = flights;
    this.#call = call;
    this.#client = client;
    this.#stream = stream;
    this.#abort = abort;
  }

  watch(): void {
    this.#unwatch = onceAllLeft(this.#flights, this.#call, this.#client, () =>
      this.#leave(),
    );
  }

  unwatch(): void {
    this.#isOver = true;
    clearTimeout(this.#grace);
    this.#unwatch?.();
  }

  /** Everyone left before the stream's end. */
  get hasLeft(): boolean {
    return this.#left;
  }

  /** Everyone left, and nothing more of the stream is needed. */
  get isDone(): boolean {
    return this.#stopped || (this.#left && !this.#lacksOnlyUsage());
  }

  /** The answer is too long to share: identical calls ask the provider themselves. */
  cannotShare(): void {
    const { cacheKey, id } = this.#call;
    if (cacheKey !== null) {
      this.#flights.cannotShare(cacheKey, id);
    }
  }

  #leave(): void {
    if (this.#isOver) {
      return;
    }
    this.#left = true;
    if (this.#lacksOnlyUsage()) {
      this.#grace = setTimeout(() => this.#stop(), USAGE_GRACE_MS);
    } else {
      this.#stop();
    }
  }

  #stop(): void {
    this.#stopped = true;
    this.#abort();
  }

  /** A client that closes at `finish_reason` has its answer; the provider's usage, which is billed, comes after it. */
  #lacksOnlyUsage(): boolean {
    const { usage, endAnnounced } = this.#stream.facts();
    return usage === null && endAnnounced === true;
  }
}
