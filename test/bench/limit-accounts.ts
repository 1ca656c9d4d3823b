import type { Redis } from "ioredis";

/** The state of one entity's limits in Redis (laid out in gateway/limits/lua/prelude.lua). Money in nanodollars. */
export interface Account {
  /** Held by calls in flight. */
  readonly leased: number;
  readonly slots: number;
  /** When the minute began that `requests` are counted in. */
  readonly minute: number;
  readonly requests: number;
  readonly windows: readonly {
    readonly name: string;
    readonly total: number;
    readonly pending: number;
  }[];
}

const PREFIX = "hearth:limits:";

const READ = `
  local fields, read = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #fields, 2 do read[fields[i]] = cmsgpack.unpack(fields[i + 1]) end
  return cjson.encode(read)`;

/** Accounts in the order of their entities; empty ones for entities that Redis does not have. */
export async function accountsOf(
  redis: Redis,
  entities: readonly string[],
): Promise<readonly Account[]> {
  return Promise.all(
    entities.map(async (entity) => {
      const text = await redis.eval(READ, 1, `${PREFIX}entity:${entity}`);
      return accountOf(
        JSON.parse(String(text)) as Record<string, readonly unknown[]>,
      );
    }),
  );
}

/** Calls with reservations now. */
export async function heldCalls(redis: Redis): Promise<number> {
  const [calls, leases] = await Promise.all([
    redis.hlen(`${PREFIX}calls`),
    redis.zcard(`${PREFIX}leases`),
  ]);
  return Math.max(calls, leases);
}

function accountOf(
  fields: Readonly<Record<string, readonly unknown[]>>,
): Account {
  const [leased, , slots, minute, requests] = fields["account"] ?? [];
  return {
    leased: Number(leased ?? 0),
    slots: Number(slots ?? 0),
    minute: Number(minute ?? 0),
    requests: Number(requests ?? 0),
    windows: Object.entries(fields)
      .filter(([name]) => name.startsWith("window:"))
      .map(([name, [, total, , , pending]]) => ({
        name: name.slice("window:".length),
        total: Number(total),
        pending: Number(pending),
      })),
  };
}
