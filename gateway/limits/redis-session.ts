import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { textOf } from "../../core/failure.ts";
import { STALE, SCRIPTS, type Reply, type ScriptName } from "./scripts.ts";

/** Redis did not answer, or returned an error such as out of memory, loading or read-only. */
export class RedisAway extends Error {}

interface SessionOptions {
  readonly redis: Redis;
  readonly instance: string;
  readonly prefix: string;
  /** null: the clock of Redis. */
  readonly now: (() => number) | null;
  /** Redis returned an error: everything sent before may be lost. */
  readonly onFailure: (reason: string) => void;
}

interface Waiter {
  readonly since: number;
  readonly reject: (error: RedisAway) => void;
}

/** Sends scripts as one session of one generation. Redis rejects what an earlier session sent and it reads late. */
export class RedisSession {
  readonly #options: SessionOptions;
  /** In the order in which they were sent. */
  readonly #waiters = new Set<Waiter>();
  #generation = "";
  #session = "";
  #scriptsLoaded = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Empty before the first one is joined. */
  get generation(): string {
    return this.#generation;
  }

  set generation(generation: string) {
    this.#generation = generation;
  }

  /** Starts a new session. */
  renew(): void {
    this.#session = randomId();
  }

  async loadScripts(): Promise<void> {
    if (this.#scriptsLoaded) {
      return;
    }
    const { redis } = this.#options;
    const loads = Object.values(SCRIPTS).map(({ source }) =>
      this.#guarded(() => redis.script("LOAD", source)),
    );
    await Promise.all(loads);
    this.#scriptsLoaded = true;
  }

  /** After a lost connection Redis may have been restarted. */
  forgetScripts(): void {
    this.#scriptsLoaded = false;
  }

  /** STALE when Redis does not have the script. Throws {@link RedisAway}. */
  async send(name: ScriptName, args: readonly string[]): Promise<Reply> {
    const { redis, prefix, instance, now, onFailure } = this.#options;
    const clock = now === null ? "" : String(now());
    try {
      const reply = await this.#guarded(() =>
        redis.callBuffer(
          "EVALSHA",
          SCRIPTS[name].sha,
          0,
          prefix,
          instance,
          this.#generation,
          this.#session,
          clock,
          ...args,
        ),
      );
      return reply as Reply;
    } catch (error) {
      if (error instanceof RedisAway) {
        throw error;
      }
      const reason = textOf(error);
      if (!reason.startsWith("NOSCRIPT")) {
        onFailure(reason);
        throw new RedisAway(reason);
      }
      this.#scriptsLoaded = false;
      return [STALE];
    }
  }

  /** Whether an answer is due for longer than `deadlineMs`; `at` by `performance.now()`. */
  isOverdue(at: number, deadlineMs: number): boolean {
    const [oldest] = this.#waiters;
    return oldest !== undefined && at - oldest.since > deadlineMs;
  }

  /** Rejects everything that still waits for an answer. */
  abandon(reason: string): void {
    const abandoned = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of abandoned) {
      waiter.reject(new RedisAway(reason));
    }
  }

  /** Settles with the answer or when it is abandoned, so that no call needs a timer. */
  #guarded<T>(ask: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiter = { since: performance.now(), reject };
      this.#waiters.add(waiter);
      ask().then(
        (answer) => {
          this.#waiters.delete(waiter);
          resolve(answer);
        },
        (error: unknown) => {
          if (this.#waiters.delete(waiter)) {
            reject(error);
          }
        },
      );
    });
  }
}

export function randomId(): string {
  return randomBytes(6).toString("base64url");
}
