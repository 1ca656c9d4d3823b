import type { Redis } from "ioredis";
import type { Counters } from "./counters.ts";
import { entityKeys } from "./entity-keys.ts";
import { RedisAway, type Link } from "./redis-link.ts";
import { STALE } from "./scripts.ts";
import { partsArguments } from "./wire.ts";

/**
 * What Redis still holds as pending of this instance from before it was started, though its journal is in the ledger:
 * a life that ended while Redis was away could not say so. Nothing would ever assign those counters again, and the
 * spend, counted twice, would hold back the last of a budget for ever.
 */
export interface FormerLife {
  /** The journal of earlier lives is in the ledger. */
  drained(): void;
  /** Redis is there. */
  joined(): void;
}

const RETRY_MS = 1_000;

export function createFormerLife(options: {
  readonly redis: Redis;
  readonly prefix: string;
  readonly link: () => Link;
  readonly counters: Counters;
}): FormerLife {
  const { redis, prefix, link, counters } = options;
  let state: "not drained" | "to do" | "running" | "done" = "not drained";

  async function dropAll(): Promise<void> {
    for await (const keys of entityKeys(redis, prefix)) {
      if (keys.length > 0) {
        await drop(keys);
      }
    }
  }

  async function drop(keys: readonly string[]): Promise<void> {
    const [code, ...names] = await link().run("own", keys);
    if (code === STALE) {
      throw new RedisAway("another generation has begun");
    }
    // From here to the sending nothing can come between: a sum that has grown meanwhile is sent after this one.
    const over = [];
    for (let at = 0; at < names.length; at += 2) {
      const [entity, window] = [String(names[at]), String(names[at + 1])];
      if (counters.pendingOf(entity, window) === 0) {
        over.push({ entity, window, pending: 0 });
      }
    }
    const replies = await Promise.all(
      partsArguments([], over, [], 0).map((args) => link().run("parts", args)),
    );
    if (replies.some(([answer]) => answer === STALE)) {
      throw new RedisAway("another generation has begun");
    }
  }

  function start(): void {
    if (state !== "to do" || !link().open()) {
      return;
    }
    state = "running";
    dropAll().then(
      () => {
        state = "done";
      },
      // Redis went away or was flushed.
      () => {
        state = "to do";
        setTimeout(start, RETRY_MS).unref();
      },
    );
  }

  return {
    drained() {
      state = "to do";
      start();
    },
    joined: start,
  };
}
