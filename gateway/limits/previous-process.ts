import type { Redis } from "ioredis";
import type { Counters } from "./counters.ts";
import { entityKeys } from "./entity-keys.ts";
import { RedisAway } from "./redis-session.ts";
import type { Link } from "./redis-link.ts";
import { STALE } from "./scripts.ts";
import { partsArguments } from "./script-arguments.ts";

const RETRY_MS = 1_000;

/**
 * Drops what is still pending in Redis from the previous process although its journal is in the ledger:
 * a process that ended while Redis was away could not report it. Nothing would ever assign those counters again, and the
 * spend, counted twice, would block the rest of a budget permanently.
 */
export class PreviousProcess {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #link: Link;
  readonly #counters: Counters;
  #state: "not drained" | "to do" | "running" | "done" = "not drained";

  constructor(options: {
    readonly redis: Redis;
    readonly prefix: string;
    readonly link: Link;
    readonly counters: Counters;
  }) {
    this.#redis = options.redis;
    this.#prefix = options.prefix;
    this.#link = options.link;
    this.#counters = options.counters;
  }

  /** The journal of previous processes is in the ledger. */
  drained(): void {
    this.#state = "to do";
    this.joined();
  }

  /** Redis is there. */
  joined(): void {
    if (this.#state !== "to do" || !this.#link.open()) {
      return;
    }
    this.#state = "running";
    this.#dropAll().then(
      () => {
        this.#state = "done";
      },
      // Redis went away or was flushed.
      () => {
        this.#state = "to do";
        setTimeout(() => this.joined(), RETRY_MS).unref();
      },
    );
  }

  async #dropAll(): Promise<void> {
    for await (const keys of entityKeys(this.#redis, this.#prefix)) {
      if (keys.length > 0) {
        await this.#drop(keys);
      }
    }
  }

  async #drop(keys: readonly string[]): Promise<void> {
    const [code, ...names] = await this.#link.run("own", keys);
    if (code === STALE) {
      throw new RedisAway("another generation has started");
    }
    // Nothing runs between this point and the sending: a sum that grows later is sent after this one.
    const over = [];
    for (let at = 0; at < names.length; at += 2) {
      const [entity, window] = [String(names[at]), String(names[at + 1])];
      if (this.#counters.pendingOf(entity, window) === 0) {
        over.push({ entity, window, pending: 0 });
      }
    }
    const replies = await Promise.all(
      partsArguments([], over, [], 0).map((args) =>
        this.#link.run("parts", args),
      ),
    );
    if (replies.some(([answer]) => answer === STALE)) {
      throw new RedisAway("another generation has started");
    }
  }
}
