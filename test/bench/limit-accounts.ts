import type { Redis } from "ioredis";

/** The state of one entity's limits in Redis (the layout is in gateway/limits/lua/prelude.lua). Money in nanodollars. */
interface Account {
  /** Reserved by calls in flight. */
  readonly leased: number;
  readonly slots: number;
  /** Start of the minute in which `requests` are counted. */
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

/** Reads the accounts of the entities, in their order; accounts that are not in Redis are empty. */
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

/** Counts the calls with reservations. */
export async function countReservations(redis: Redis): Promise<number> {
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
