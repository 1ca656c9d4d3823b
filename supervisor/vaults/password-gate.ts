import { Failure } from "../../core/failure.ts";
import { isWithin } from "../../core/clock-jumps.ts";
import type { CouchAnswer } from "./couch-answers.ts";

/**
 * Delays before a rejected password is tried again: five rejections within five minutes lock the admin out.
 * The first one is short because a CouchDB rejects the right password for a moment after it was changed.
 */
const RETRY_DELAYS_MS = [5000, 600_000] as const;

interface PasswordGateOptions {
  /** Undefined while there is no password. */
  readonly password: () => string | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Of the store, for messages. */
  readonly url: string;
  /** One request with a password. */
  readonly attempt: (password: string) => Promise<CouchAnswer>;
}

/** Releases a password once a single request has shown that it is right, and withholds it while it is rejected. */
export class PasswordGate {
  readonly #options: PasswordGateOptions;
  #proven: { password: string; by: Promise<void> } | undefined;
  #rejection: { password: string; at: number; times: number } | undefined;

  constructor(options: PasswordGateOptions) {
    this.#options = options;
  }

  /** The current password. Throws while it is unknown or was rejected. */
  async enter(): Promise<string> {
    const password = this.#options.password();
    if (password === undefined) {
      throw new Failure(
        "the notes store's admin password is missing: set NOTES_ADMIN_PASSWORD or NOTES_ADMIN_PASSWORD_FILE.",
      );
    }
    if (this.#proven?.password !== password) {
      this.#requireRetry(password);
      const by = this.#prove(password);
      this.#proven = { password, by };
      by.catch(() => {
        if (this.#proven?.by === by) {
          this.#proven = undefined;
        }
      });
    }
    await this.#proven.by;
    return password;
  }

  /** Records a rejection; returns the error to throw. */
  rejected(password: string, answer: CouchAnswer): Failure {
    const { url, now } = this.#options;
    this.#proven = undefined;
    if (answer.status === 403) {
      // Caused by wrong passwords of others from this address: the store says nothing about this one, and further attempts do not count.
      this.#rejection = { password, at: now(), times: 1 };
      return new Failure(
        `the notes store at ${url} has locked the admin out for up to five minutes because of wrong passwords from this address; retrying meanwhile.`,
      );
    }
    const earlier =
      this.#rejection?.password === password ? this.#rejection : undefined;
    // Concurrent requests count as one rejection.
    if (
      earlier === undefined ||
      !isWithin(earlier.at, RETRY_DELAYS_MS[0], now())
    ) {
      this.#rejection = {
        password,
        at: now(),
        times: (earlier?.times ?? 0) + 1,
      };
    }
    return new Failure(
      `the notes store at ${url} rejects the admin's password: correct NOTES_ADMIN_PASSWORD (or its file). No further requests are sent until then, so that the admin is not locked out.`,
    );
  }

  #requireRetry(password: string): void {
    const rejection = this.#rejection;
    if (rejection?.password !== password) {
      return;
    }
    const delay = delayAfter(rejection.times);
    if (isWithin(rejection.at, delay, this.#options.now())) {
      const retryAt = rejection.at + delay;
      throw new Failure(
        `the notes store at ${this.#options.url} rejected this admin password; it is not tried again until ${new Date(retryAt).toISOString()}, or until NOTES_ADMIN_PASSWORD (or its file) changes.`,
      );
    }
  }

  async #prove(password: string): Promise<void> {
    const answer = await this.#options.attempt(password);
    if (isRejectedPassword(answer)) {
      throw this.rejected(password, answer);
    }
    this.#rejection = undefined;
  }
}

/** A wrong password is 401; a locked user's, right or wrong, 403. The admin gets neither otherwise. */
export function isRejectedPassword({ status, text }: CouchAnswer): boolean {
  return status === 401 || (status === 403 && text.includes("locked"));
}

function delayAfter(rejections: number): number {
  return RETRY_DELAYS_MS[Math.min(rejections, RETRY_DELAYS_MS.length) - 1] ?? 0;
}
