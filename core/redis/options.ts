import type { RedisPlace } from "./place.ts";

/** A sentinel that does not answer is passed over. */
const SENTINEL_DEADLINE_MS = 1_000;

/** The options of ioredis for a place; how long it waits and retries is up to the caller. */
export function redisOptions(place: RedisPlace) {
  const { nodes, sentinel, username, password, database, ca } = place;
  const tls = place.tls ? { tls: ca === null ? {} : { ca } } : {};
  return {
    ...(sentinel === null
      ? nodes[0]
      : {
          sentinels: nodes.map((node) => ({ ...node })),
          name: sentinel.masterName,
          ...(sentinel.username === null
            ? {}
            : { sentinelUsername: sentinel.username }),
          ...(sentinel.password === null
            ? {}
            : { sentinelPassword: sentinel.password }),
          sentinelCommandTimeout: SENTINEL_DEADLINE_MS,
          ...(place.tls
            ? { enableTLSForSentinelMode: true, sentinelTLS: tls.tls }
            : {}),
        }),
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    db: database,
    ...tls,
  };
}

interface Client {
  on(event: "error", listener: (error: Error) => void): unknown;
  disconnect(reconnect?: boolean): void;
}

/**
 * ioredis continues in database 0, which may belong to another stack, when Redis rejects the number of the database: such a
 * connection is closed before it is used.
 */
export function leaveWrongDatabase(client: Client, reconnect: boolean): void {
  client.on("error", (error) => {
    if (isRejectedDatabase(error)) {
      client.disconnect(reconnect);
    }
  });
}

export function isRejectedDatabase(error: Error): boolean {
  const { command } = error as { readonly command?: { readonly name: string } };
  return command?.name.toLowerCase() === "select";
}
