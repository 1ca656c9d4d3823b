import { randomBytes } from "node:crypto";
import { MINUTE_MS } from "../../core/duration.ts";
import { openBytes, sealBytes } from "../../core/sealed.ts";
import { newToken } from "../../supervisor/history/sessions.ts";

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
const MAX_USED = 10_000;
/** Browsers drop cookies of more than 4096 bytes. */
const MAX_PATH_LENGTH = 2000;

interface Entry {
  readonly pending: PendingSignIn;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

/**
 * Sign-ins in progress, each in a cookie of the browser that began it, encrypted: a sign-in cannot be ended in another browser, and
 * clients that begin many do not end those of others. Each can be used once, within ten minutes, and before a restart.
 */
export class PendingSignIns {
  readonly #now: () => number;
  readonly #key = randomBytes(32);
  /** By state, when they end. */
  readonly #used = new Map<string, number>();

  /** `now` returns milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the state for the provider, and the value of the browser's cookie. */
  add(pending: PendingSignIn): {
    readonly state: string;
    readonly proof: string;
  } {
    const state = newToken();
    const to = pending.to.length > MAX_PATH_LENGTH ? "/" : pending.to;
    const endsAt = this.#now() + PENDING_MINUTES * MINUTE_MS;
    const entry: Entry = { pending: { ...pending, to }, endsAt };
    const sealed = sealBytes(JSON.stringify(entry), this.#key, state);
    return { state, proof: sealed.toString("base64url") };
  }

  /** The sign-in of this state and browser, once. */
  use(state: string, proof = ""): PendingSignIn | undefined {
    const sealed = Buffer.from(proof, "base64url");
    const opened = openBytes(sealed, this.#key, state);
    if (opened === undefined || this.#used.has(state)) {
      return undefined;
    }
    const { pending, endsAt } = JSON.parse(opened) as Entry;
    if (endsAt <= this.#now()) {
      return undefined;
    }
    this.#noteUse(state, endsAt);
    return pending;
  }

  /** The provider accepts no code twice either, so the oldest may be forgotten. */
  #noteUse(state: string, endsAt: number): void {
    for (const [known, knownEnd] of this.#used) {
      if (knownEnd > this.#now() && this.#used.size < MAX_USED) {
        break;
      }
      this.#used.delete(known);
    }
    this.#used.set(state, endsAt);
  }
}
