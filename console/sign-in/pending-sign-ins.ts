import { MINUTE_MS } from "../../core/duration.ts";
import { newToken } from "../../supervisor/history/sessions.ts";
import { isSameText } from "../http/same-text.ts";

/** A browser that was sent to a provider. */
export interface PendingSignIn {
  readonly provider: string;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
  /** Path of the page that was requested. */
  readonly to: string;
}

export const PENDING_MINUTES = 10;
const MAX_PENDING = 10_000;

interface Entry {
  readonly pending: PendingSignIn;
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

/**
 * Sign-ins in progress, by their state. Each can be used once, within ten minutes, and only by the browser that began it, which
 * proves that with a secret in a cookie: a sign-in cannot be ended in another browser. In memory.
 */
export class PendingSignIns {
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();

  /** `now` returns milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the state for the provider, and the secret for the browser's cookie. */
  add(pending: PendingSignIn): {
    readonly state: string;
    readonly secret: string;
  } {
    for (const [known, { endsAt }] of this.#entries) {
      if (endsAt > this.#now() && this.#entries.size < MAX_PENDING) {
        break;
      }
      this.#entries.delete(known);
    }
    const [state, secret] = [newToken(), newToken()];
    const endsAt = this.#now() + PENDING_MINUTES * MINUTE_MS;
    this.#entries.set(state, { pending, secret, endsAt });
    return { state, secret };
  }

  /** The sign-in of this state and browser, once. */
  use(state: string, secret: string | undefined): PendingSignIn | undefined {
    const entry = this.#entries.get(state);
    if (
      entry === undefined ||
      secret === undefined ||
      !isSameText(entry.secret, secret)
    ) {
      return undefined;
    }
    this.#entries.delete(state);
    return entry.endsAt > this.#now() ? entry.pending : undefined;
  }
}
