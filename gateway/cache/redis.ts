import { Redis, type RedisOptions } from "ioredis";
import { leaveWrongDatabase, redisOptions } from "../../core/redis/options.ts";
import type { RedisPlace } from "../../core/redis/place.ts";

const MAX_WAIT_MS = 250;

/** Maximum wait for an answer of the cache; the limits have a separate deadline. */
const CACHE_DEADLINE_MS = 1_000;

/**
 * A connection that retries until it is closed. While it is down every command fails at once: callers continue without
 * Redis rather than wait for it. `onError` receives each failed attempt.
 */
export function connectRedis(
  place: RedisPlace,
  onError: (error: Error) => void,
): Redis {
  return connect(place, {}, onError);
}

/**
 * The same for cached answers, which may have megabytes: on the connection of the limits they would delay every call behind
 * them, up to the deadline after which Redis counts as unavailable. A command without an answer for a second fails.
 */
export function connectCacheRedis(
  place: RedisPlace,
  onError: (error: Error) => void,
): Redis {
  return connect(place, { commandTimeout: CACHE_DEADLINE_MS }, onError);
}

function connect(
  place: RedisPlace,
  options: RedisOptions,
  onError: (error: Error) => void,
): Redis {
  const redis = new Redis({
    ...redisOptions(place),
    ...options,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A command sent again after a reconnect could take effect twice, or undo a later one.
    autoResendUnfulfilledCommands: false,
    // A primary that became a replica keeps its connections: the new one is at the other end of a new connection.
    reconnectOnError: (error) => error.message.includes("READONLY"),
    connectTimeout: 2_000,
    disconnectTimeout: 200,
    keepAlive: 10_000,
    retryStrategy: (attempt) =>
      Math.min(MAX_WAIT_MS, 50 * 2 ** Math.min(attempt - 1, 10)),
  });
  redis.on("error", onError);
  // What one sentinel answered: the error of the connection itself names none of it.
  redis.on("sentinelError", onError);
  leaveWrongDatabase(redis, true);
  writeOnceEachTurn(redis);
  return redis;
}

/**
 * All commands of one turn of the event loop go to the socket in one write: each write is a system call, and under load
 * they cost more than the commands themselves.
 */
function writeOnceEachTurn(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  const last: (() => void)[] = [];
  let corked: { uncork(): void } | null = null;
  let ending = false;

  function endSoon(): void {
    if (ending) {
      return;
    }
    ending = true;
    setImmediate(end);
  }

  function end(): void {
    try {
      while (last.length > 0) {
        last.shift()?.();
      }
    } finally {
      ending = false;
      corked?.uncork();
      corked = null;
      if (last.length > 0) {
        endSoon();
      }
    }
  }

  redis.sendCommand = (command, stream) => {
    const { stream: socket } = redis;
    if (socket?.writable === true && corked === null) {
      socket.cork();
      corked = socket;
      endSoon();
    }
    return send(command, stream);
  };
  lastOfTurn.set(redis, (work) => {
    last.push(work);
    endSoon();
  });
}

const lastOfTurn = new WeakMap<Redis, (work: () => void) => void>();

/** Runs the work after everything else in this turn of the event loop; what it sends joins the turn's write. */
export function atEndOfTurn(redis: Redis, work: () => void): void {
  const add = lastOfTurn.get(redis) ?? setImmediate;
  add(work);
}
