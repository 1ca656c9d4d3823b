import { HOUR_MS } from "../../core/duration.ts";
import { clientNetwork } from "../../core/client-network.ts";

const FREE_ATTEMPTS = 5;
const FIRST_WAIT_MS = 2000;
const MAX_WAIT_MS = 300_000;
const FORGET_AFTER_MS = HOUR_MS;
const MAX_CLIENTS = 10_000;

/** Limits password attempts: after five failures in a row from one address (one /64 of IPv6), each further one doubles the wait. Counts in memory. */
export class Attempts {
  readonly #now: () => number;
  readonly #byClient = new Map<
    string,
    { readonly count: number; readonly at: number }
  >();

  /** `now` gives milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Milliseconds until this address may try again; 0 for now. */
  waitOf(address: string): number {
    const entry = this.#known(address);
    if (entry === undefined || entry.count < FREE_ATTEMPTS) {
      return 0;
    }
    const wait = Math.min(
      MAX_WAIT_MS,
      FIRST_WAIT_MS * 2 ** (entry.count - FREE_ATTEMPTS),
    );
    return Math.max(0, entry.at + wait - this.#now());
  }

  failed(address: string): void {
    const count = (this.#known(address)?.count ?? 0) + 1;
    const client = clientNetwork(address);
    this.#byClient.delete(client);
    this.#byClient.set(client, { count, at: this.#now() });
    const [oldest] = this.#byClient.keys();
    if (this.#byClient.size > MAX_CLIENTS && oldest !== undefined) {
      this.#byClient.delete(oldest);
    }
  }

  succeeded(address: string): void {
    this.#byClient.delete(clientNetwork(address));
  }

  #known(address: string) {
    const client = clientNetwork(address);
    const entry = this.#byClient.get(client);
    if (entry === undefined || this.#now() - entry.at < FORGET_AFTER_MS) {
      return entry;
    }
    this.#byClient.delete(client);
    return undefined;
  }
}
